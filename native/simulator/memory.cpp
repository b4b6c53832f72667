// cuMemAlloc and its family: linear device memory.
#include "native/simulator/memory.h"

#include <limits>
#include <vector>

#include "native/simulator/arena.h"
#include "native/simulator/capture.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/graph_memory.h"
#include "native/simulator/handles.h"
#include "native/simulator/managed_memory.h"
#include "native/simulator/pool.h"
#include "native/simulator/shared_memory.h"
#include "native/simulator/stream.h"

namespace simulator {
namespace {

/// Whether accepted allocations contain the range: one, or mapped ones side by side.
template <class Accept>
bool inside(std::uint64_t address, std::size_t bytes, Accept&& accept) {
  while (true) {
    const auto found = Allocations::all().find(address);
    if (!found || !accept(*found)) return false;
    const std::size_t available = found->end() - address;
    if (bytes <= available) return true;
    if (found->kind != MemoryKind::mapped) return false;
    address += available;
    bytes -= available;
  }
}

}  // namespace

std::uint64_t allocate(Context& context, std::size_t bytes, MemoryKind kind) {
  const auto sharing = kind == MemoryKind::device ? Sharing::possible : Sharing::none;
  const std::uint64_t address = Arena::instance().allocate(&context.device, bytes, sharing);
  if (address == 0) return 0;
  Allocation allocation;
  allocation.begin = address;
  allocation.size = bytes;
  allocation.kind = kind;
  allocation.context = &context;
  allocation.device = &context.device;
  allocation.synchronous =
      kind == MemoryKind::device;  // the real driver reports it for cuMemAlloc memory
  if (allocation.managed()) managedRanges().add(address, bytes);
  Allocations::all().add(std::move(allocation));
  return address;
}

std::uint64_t allocateShared(std::size_t bytes) {
  const std::uint64_t address = Arena::instance().allocate(nullptr, bytes);
  if (address == 0) return 0;
  Allocation allocation;
  allocation.begin = address;
  allocation.size = bytes;
  allocation.kind = MemoryKind::managedVariable;
  allocation.device = devices().front().get();
  managedRanges().add(address, bytes);
  Allocations::all().add(std::move(allocation));
  return address;
}

void releaseAt(std::uint64_t address) {
  const auto taken = Allocations::all().take(address, [](const Allocation&) { return true; });
  if (taken) release(*taken);
}

void release(const Allocation& allocation) {
  if (allocation.managed()) managedRanges().remove(allocation.begin);
  endExport(allocation.begin);
  if (allocation.kind == MemoryKind::imported) return unmapImported(allocation.begin);
  if (allocation.pool != nullptr) allocation.pool->giveBack(allocation.size);
  if (allocation.kind == MemoryKind::hostAllocated) freeHostPages(allocation);
  if (!allocation.host()) Arena::instance().release(allocation.begin);
}

void freeAll(Context& context) {
  std::vector<std::uint64_t> owned;
  Allocations::all().each([&](const Allocation& allocation) {
    if (allocation.context == &context) owned.push_back(allocation.begin);
  });
  for (const std::uint64_t address : owned) {
    releaseAt(address);
  }
}

void synchronizeAll() {
  for (const auto& context : Handles<Context>::all().where(
           [](const Context& candidate) { return candidate.alive.load(); })) {
    synchronize(*context);
  }
}

bool insideAllocation(std::uint64_t address, std::size_t bytes) {
  return inside(address, bytes, [](const Allocation& allocation) { return allocation.granted(); });
}

bool insideWritable(std::uint64_t address, std::size_t bytes) {
  return inside(address, bytes, [](const Allocation& allocation) {
    return allocation.granted() && allocation.writable();
  });
}

bool insideMapped(std::uint64_t address, std::size_t bytes) {
  return inside(address, bytes, [](const Allocation& allocation) {
    return allocation.kind == MemoryKind::mapped && allocation.granted();
  });
}

}  // namespace simulator

using namespace simulator;

namespace {

constexpr std::size_t kPitch = 512;

CUresult freeGraphMemory(CUdeviceptr dptr) {
  const auto memory = takeOutstanding(dptr);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  synchronizeAll();
  memory->setAccessible(false);
  return fault();
}

bool freedByMemFree(const Allocation& allocation) {
  return allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed ||
         allocation.kind == MemoryKind::pool || allocation.importedOfPool();
}

}  // namespace

DRIVER_CALL cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t address = allocate(context, bytesize, MemoryKind::device);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = address;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes,
                               size_t Height, unsigned int ElementSizeBytes) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (ElementSizeBytes != 4 && ElementSizeBytes != 8 && ElementSizeBytes != 16)
      return CUDA_ERROR_INVALID_VALUE;
    if (WidthInBytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      return CUDA_ERROR_INVALID_VALUE;
    const std::size_t pitch = (WidthInBytes + kPitch - 1) / kPitch * kPitch;
    if (Height > std::numeric_limits<std::size_t>::max() / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
    const std::uint64_t address = allocate(context, pitch * Height, MemoryKind::device);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = address;
    *pPitch = pitch;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemFree_v2(CUdeviceptr dptr) {
  const auto freeIt = [&]() -> CUresult {
    const CUresult status = unsafeInCapture();
    if (status != CUDA_SUCCESS || dptr == 0) return status;
    const auto found = Allocations::all().find(dptr);
    if (found && found->kind == MemoryKind::graph) return freeGraphMemory(dptr);
    if (!found || found->begin != dptr || !freedByMemFree(*found)) return CUDA_ERROR_INVALID_VALUE;
    if (found->importedOfPool() && !dropImport(dptr)) return CUDA_SUCCESS;
    if (found->kind != MemoryKind::pool) synchronizeAll();  // an H200 does not wait for a pool's
    if (fault() != CUDA_SUCCESS) return fault();
    const auto taken = Allocations::all().take(dptr, freedByMemFree);
    if (!taken) return CUDA_ERROR_INVALID_VALUE;
    release(*taken);
    return CUDA_SUCCESS;
  };
  // The pointer identifies the owner, so a thread without a current context may free it.
  if (contextStack().empty()) return inDriver(freeIt);
  return inContext([&](Context&) { return freeIt(); });
}

DRIVER_CALL cuMemGetInfo_v2(size_t* free, size_t* total) {
  return inContext([&](Context& context) -> CUresult {
    if (total != nullptr) *total = context.device.totalBytes;
    if (free != nullptr) *free = context.device.totalBytes - context.device.usedBytes();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Allocations::all().find(dptr);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    if (pbase != nullptr) *pbase = found->begin;
    if (psize != nullptr) *psize = found->size;
    return CUDA_SUCCESS;
  });
}
