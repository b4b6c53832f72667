#include "interposer/memory/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <shared_mutex>

#include "interposer/session/call.h"
#include "interposer/session/log.h"
#include "interposer/session/memory_file.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

struct Allocation {
  std::size_t bytes;  ///< as asked for
  unsigned flags;
};

struct HostMemory {
  std::shared_mutex mutex;
  std::map<std::uint64_t, Allocation> allocations;
};

HostMemory& hostMemory() {
  static HostMemory* const instance = new HostMemory;
  return *instance;
}

constexpr unsigned kKnownFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

/// The allocation around an address; false when there is none.
bool find(const void* pointer, std::uint64_t& begin, Allocation& allocation) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const std::shared_lock lock(hostMemory().mutex);
  auto next = hostMemory().allocations.upper_bound(address);
  if (next == hostMemory().allocations.begin()) return false;
  --next;
  if (address - next->first >= next->second.bytes) return false;
  begin = next->first;
  allocation = next->second;
  return true;
}

/// Maps a new memory file in the window and has the worker do the same.
CUresult share(std::uint64_t address, std::size_t bytes, unsigned flags) {
  const int file = createMemoryFile(bytes);
  if (file < 0 || !wire::mapShared(address, bytes, file)) {
    if (file >= 0) close(file);
    log("cannot pin %zu bytes of host memory: the system refuses more shared memory; raise the "
        "container's memory limit or free some",
        bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const std::uint64_t id = Session::current()->sendMemory(file);
  close(file);
  if (id == 0) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  Call call;
  if (!call.begin(CallNumber::cuMemHostAlloc, 32, kOrdered)) return call.status();
  call.encoder().put(id);
  call.encoder().put(address);
  call.encoder().put<std::uint64_t>(bytes);
  call.encoder().put(flags);
  wire::Decoder reply;
  return call.wait(reply);
}

}  // namespace

bool isPinned(const void* address, std::size_t bytes) {
  std::uint64_t begin = 0;
  Allocation allocation{};
  if (!find(address, begin, allocation)) return false;
  return bytes <= allocation.bytes - (reinterpret_cast<std::uint64_t>(address) - begin);
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pp == nullptr || (Flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize == 0) return *pp = nullptr, CUDA_SUCCESS;
  wire::AddressWindow& window = Session::current()->window;
  const std::size_t mapped = (bytesize + 4095) & ~std::size_t{4095};
  const std::uint64_t address = mapped >= bytesize ? window.allocate(mapped) : 0;
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = share(address, mapped, Flags); status != CUDA_SUCCESS) {
    wire::unmapShared(address, mapped);
    window.release(address);
    return status;
  }
  const std::lock_guard lock(hostMemory().mutex);
  hostMemory().allocations[address] = {bytesize, Flags};
  *pp = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return interposer::cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void* p) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (p == nullptr) return CUDA_SUCCESS;
  std::uint64_t begin = 0;
  Allocation allocation{};
  if (!find(p, begin, allocation) || begin != reinterpret_cast<std::uint64_t>(p))
    return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuMemFreeHost, 8, kOrdered)) return call.status();
  call.encoder().put(begin);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  {
    const std::lock_guard lock(hostMemory().mutex);
    hostMemory().allocations.erase(begin);
  }
  wire::unmapShared(begin, (allocation.bytes + 4095) & ~std::size_t{4095});
  Session::current()->window.release(begin);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pdptr == nullptr || Flags != 0 || !isPinned(p, 1)) return CUDA_ERROR_INVALID_VALUE;
  *pdptr =
      reinterpret_cast<CUdeviceptr>(p);  // the same address on host and device, also in the worker
  return CUDA_SUCCESS;
}

/// Pinned memory is known here as the program asked for it; in the worker it is whole pages.
CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  std::uint64_t begin = 0;
  Allocation allocation{};
  if (!find(reinterpret_cast<void*>(dptr), begin, allocation))
    return remote::cuMemGetAddressRange_v2(pbase, psize, dptr);
  if (pbase != nullptr) *pbase = begin;
  if (psize != nullptr) *psize = allocation.bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  std::uint64_t begin = 0;
  Allocation allocation{};
  if (pFlags == nullptr || !find(p, begin, allocation)) return CUDA_ERROR_INVALID_VALUE;
  *pFlags =
      allocation.flags |
      CU_MEMHOSTALLOC_DEVICEMAP;  // always on with unified addressing, and so reported (recorded)
  return CUDA_SUCCESS;
}

}  // namespace interposer
