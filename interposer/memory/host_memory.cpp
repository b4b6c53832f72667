#include "interposer/memory/host_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <shared_mutex>

#include "interposer/contexts/contexts.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/session/call.h"
#include "interposer/session/log.h"
#include "interposer/session/memory_file.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

struct HostMemory {
  std::shared_mutex mutex;
  std::map<std::uint64_t, HostRange> ranges;
};

HostMemory& hostMemory() {
  static HostMemory* const instance = new HostMemory;
  return *instance;
}

constexpr unsigned kKnownFlags =
    CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;

std::size_t wholePages(std::size_t bytes) { return (bytes + 4095) & ~std::size_t{4095}; }

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

std::optional<HostRange> findHostRange(std::uint64_t address) {
  const std::shared_lock lock(hostMemory().mutex);
  auto next = hostMemory().ranges.upper_bound(address);
  if (next == hostMemory().ranges.begin()) return std::nullopt;
  --next;
  if (address - next->first >= next->second.bytes) return std::nullopt;
  return next->second;
}

std::optional<HostRange> overlappingHostRange(std::uint64_t begin, std::size_t bytes) {
  if (const auto around = findHostRange(begin)) return around;
  const std::shared_lock lock(hostMemory().mutex);
  const auto next = hostMemory().ranges.lower_bound(begin);
  if (next == hostMemory().ranges.end() || next->first - begin >= bytes) return std::nullopt;
  return next->second;
}

void addHostRange(const HostRange& range) {
  const std::lock_guard lock(hostMemory().mutex);
  hostMemory().ranges[range.begin] = range;
}

std::vector<HostRange> hostRangesOf(CUcontext context, HostKind kind) {
  std::vector<HostRange> found;
  const std::shared_lock lock(hostMemory().mutex);
  for (const auto& [begin, range] : hostMemory().ranges) {
    if (range.context == context && range.kind == kind) found.push_back(range);
  }
  return found;
}

void removeHostRange(std::uint64_t begin) {
  const std::lock_guard lock(hostMemory().mutex);
  hostMemory().ranges.erase(begin);
}

bool isManaged(const HostRange& range) {
  return range.kind == HostKind::managed || range.kind == HostKind::moving;
}

bool isPinned(const void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  const auto range = findHostRange(address);
  return range && range->kind != HostKind::moving &&
         bytes <= range->bytes - (address - range->begin);
}

CUresult allocateShared(HostKind kind, std::size_t bytes, unsigned flags, std::uint64_t& address) {
  wire::AddressWindow& window = Session::current()->window;
  const std::size_t mapped = wholePages(bytes);
  address = mapped >= bytes ? window.allocate(mapped) : 0;
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  if (const CUresult status = share(address, mapped, flags); status != CUDA_SUCCESS) {
    wire::unmapShared(address, mapped);
    window.release(address);
    return status;
  }
  addHostRange({address, bytes, flags, kind, Thread::current().context()});
  return CUDA_SUCCESS;
}

CUresult freeShared(HostKind kind, std::uint64_t address) {
  const auto range = findHostRange(address);
  if (!range || range->begin != address || range->kind != kind) return CUDA_ERROR_INVALID_VALUE;
  Call call;
  if (!call.begin(CallNumber::cuMemFreeHost, 8, kOrdered)) return call.status();
  call.encoder().put(address);
  wire::Decoder reply;
  if (const CUresult status = call.wait(reply); status != CUDA_SUCCESS) return status;
  removeHostRange(address);
  if (kind == HostKind::managed) managedRanges().remove(address);
  wire::unmapShared(address, wholePages(range->bytes));
  Session::current()->window.release(address);
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** pp, size_t bytesize, unsigned int Flags) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (pp == nullptr || (Flags & ~kKnownFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytesize == 0) return *pp = nullptr, CUDA_SUCCESS;
  std::uint64_t address = 0;
  const CUresult status = allocateShared(HostKind::pinned, bytesize, Flags, address);
  if (status == CUDA_SUCCESS) *pp = reinterpret_cast<void*>(address);
  return status;
}

CUresult cuMemAllocHost_v2(void** pp, size_t bytesize) {
  return interposer::cuMemHostAlloc(pp, bytesize, 0);
}

CUresult cuMemFreeHost(void* p) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (p == nullptr) return CUDA_SUCCESS;
  return freeShared(HostKind::pinned, reinterpret_cast<std::uint64_t>(p));
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* pdptr, void* p, unsigned int Flags) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  const auto address = reinterpret_cast<std::uint64_t>(p);
  const auto range = findHostRange(address);
  if (pdptr == nullptr || Flags != 0 || !range || isManaged(*range))
    return CUDA_ERROR_INVALID_VALUE;
  *pdptr = address;  // the same address on host and device, also in the worker
  return CUDA_SUCCESS;
}

/// Such memory is known here as the program asked for it; in the worker it is whole pages.
CUresult cuMemGetAddressRange_v2(CUdeviceptr* pbase, size_t* psize, CUdeviceptr dptr) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const auto range = findHostRange(dptr);
  if (!range) return remote::cuMemGetAddressRange_v2(pbase, psize, dptr);
  if (pbase != nullptr) *pbase = range->begin;
  if (psize != nullptr) *psize = range->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned int* pFlags, void* p) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  const auto range = findHostRange(reinterpret_cast<std::uint64_t>(p));
  if (pFlags == nullptr || !range || isManaged(*range)) return CUDA_ERROR_INVALID_VALUE;
  // always on with unified addressing, and so reported (recorded)
  *pFlags = range->flags | CU_MEMHOSTALLOC_DEVICEMAP;
  return CUDA_SUCCESS;
}

}  // namespace interposer
