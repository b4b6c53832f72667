// malloc and free of kernels.
#include <atomic>

#include "native/simulator/context.h"
#include "native/simulator/launch.h"
#include "native/simulator/memory.h"

namespace simulator {

std::uint64_t heapAllocate(Context& context, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  std::size_t limit = 0;
  {
    const std::lock_guard lock(context.mutex);
    limit = context.limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  }
  if (bytes > limit || context.heapBytes.fetch_add(bytes) + bytes > limit) {
    if (bytes <= limit) context.heapBytes.fetch_sub(bytes);
    return 0;
  }
  const std::uint64_t address = allocate(context, bytes, MemoryKind::heap);
  if (address == 0) context.heapBytes.fetch_sub(bytes);
  return address;
}

void heapFree(Context& context, std::uint64_t address) {
  const auto taken = Allocations::all().take(
      address, [&](const Allocation& allocation) { return allocation.kind == MemoryKind::heap && allocation.context == &context; });
  if (!taken) return;
  context.heapBytes.fetch_sub(taken->size);
  release(*taken);
}

}  // namespace simulator
