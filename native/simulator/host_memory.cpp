// Page-locked host memory: kernels reach it at the address that the host uses.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "native/simulator/capture.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/fault.h"
#include "native/simulator/memory.h"
#include "wire/memory_maps.h"

namespace simulator {
namespace {

std::size_t wholePages(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

std::uint64_t addressOf(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CUresult allocateHost(Context& context, void** pp, std::size_t bytes, unsigned flags) {
  if (pp == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (bytes == 0) {
    *pp = nullptr;
    return CUDA_SUCCESS;
  }
  if (bytes > ~std::size_t{0} >> 1) return CUDA_ERROR_OUT_OF_MEMORY;
  void* memory =
      mmap(nullptr, wholePages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  Allocation allocation;
  allocation.begin = addressOf(memory);
  allocation.size = bytes;
  allocation.kind = MemoryKind::hostAllocated;
  allocation.context = &context;
  allocation.flags = flags | CU_MEMHOSTALLOC_DEVICEMAP;
  Allocations::all().add(std::move(allocation));
  *pp = memory;
  return CUDA_SUCCESS;
}

/// Removes the host memory of `kind` that begins at `p`, after its last use has ended.
CUresult takeHost(const void* p, MemoryKind kind, std::optional<Allocation>& taken) {
  const auto matches = [&](const Allocation& allocation) { return allocation.kind == kind; };
  const auto found = Allocations::all().find(addressOf(p));
  if (!found || found->begin != addressOf(p) || !matches(*found)) return CUDA_ERROR_INVALID_VALUE;
  synchronizeAll();
  if (fault() != CUDA_SUCCESS) return fault();
  taken = Allocations::all().take(addressOf(p), matches);
  return taken ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Whether the pages are there, and kernels may write them unless the program says that they do
/// not.
bool canRegister(std::uint64_t begin, std::size_t bytes, unsigned flags) {
  if (bytes > ~std::uint64_t{0} - begin) return false;
  const bool readOnly = (flags & CU_MEMHOSTREGISTER_READ_ONLY) != 0;
  return wire::isMapped(begin, begin + bytes, readOnly ? PROT_READ : PROT_READ | PROT_WRITE);
}

}  // namespace

void freeHostPages(const Allocation& allocation) {
  munmap(reinterpret_cast<void*>(allocation.begin), wholePages(allocation.size));
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return outsideCapture([&](Context& context) { return allocateHost(context, pp, bytesize, 0); });
}

DRIVER_CALL cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  return outsideCapture([&](Context& context) -> CUresult {
    constexpr unsigned kFlags =
        CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
    return (Flags & ~kFlags) != 0 ? CUDA_ERROR_INVALID_VALUE
                                  : allocateHost(context, pp, bytesize, Flags);
  });
}

DRIVER_CALL cuMemFreeHost(void* p) {
  return freeOutsideCapture([&]() -> CUresult {
    if (p == nullptr) return CUDA_SUCCESS;
    std::optional<Allocation> taken;
    const CUresult status = takeHost(p, MemoryKind::hostAllocated, taken);
    if (status == CUDA_SUCCESS) release(*taken);
    return status;
  });
}

DRIVER_CALL cuMemHostRegister_v2(void* p, size_t bytesize, unsigned int Flags) {
  return outsideCapture([&](Context& context) -> CUresult {
    constexpr unsigned kFlags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                                CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
    if (p == nullptr || bytesize == 0 || (Flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((Flags & CU_MEMHOSTREGISTER_IOMEMORY) != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto there = Allocations::all().find(addressOf(p));
    if (there && there->kind != MemoryKind::hostRegistered) return CUDA_ERROR_INVALID_VALUE;
    if (Allocations::all().overlaps(addressOf(p), bytesize))
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (!canRegister(addressOf(p), bytesize, Flags)) return CUDA_ERROR_INVALID_VALUE;
    Allocation allocation;
    allocation.begin = addressOf(p);
    allocation.size = bytesize;
    allocation.kind = MemoryKind::hostRegistered;
    allocation.context = &context;
    allocation.flags = Flags | CU_MEMHOSTREGISTER_DEVICEMAP;
    Allocations::all().add(std::move(allocation));
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemHostRegister(void* p, size_t bytesize, unsigned int Flags) {
  return cuMemHostRegister_v2(p, bytesize, Flags);
}

DRIVER_CALL cuMemHostUnregister(void* p) {
  return freeOutsideCapture([&]() -> CUresult {
    if (p != nullptr && !Allocations::all().find(addressOf(p)))
      return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    std::optional<Allocation> taken;
    return takeHost(p, MemoryKind::hostRegistered, taken);
  });
}

DRIVER_CALL cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  return inContext([&](Context&) -> CUresult {
    if (pdptr == nullptr || Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto found = Allocations::all().find(addressOf(p));
    if (!found || !found->host()) return CUDA_ERROR_INVALID_VALUE;
    *pdptr = addressOf(p);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  return inContext([&](Context&) -> CUresult {
    const auto found = Allocations::all().find(addressOf(p));
    if (pFlags == nullptr || !found || !found->host()) return CUDA_ERROR_INVALID_VALUE;
    *pFlags = found->flags;
    return CUDA_SUCCESS;
  });
}
