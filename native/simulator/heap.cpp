// malloc and free of kernels. The first malloc reserves the whole heap (the real driver does when such code is loaded).
#include <atomic>

#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/launch.h"
#include "native/simulator/memory.h"

namespace simulator {

namespace {

/// Its size; 0 when the device is full.
std::size_t reserveHeap(Context& context) {
  const std::lock_guard lock(context.mutex);
  const std::size_t limit = context.limits[CU_LIMIT_MALLOC_HEAP_SIZE];
  if (context.heapLimit == 0 && context.device.charge(limit)) {
    context.heapLimit = limit;
    context.reservedBytes += limit;
  }
  return context.heapLimit;
}

}  // namespace

std::uint64_t heapAllocate(Context& context, std::uint64_t bytes) {
  if (bytes == 0) return 0;
  const std::size_t limit = reserveHeap(context);
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
