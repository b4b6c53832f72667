#include "interposer/memory/managed_memory.h"

#include <cstring>

#include "interposer/contexts/contexts.h"
#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/host_memory.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/memory/moving_memory.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

int deviceCount() { return static_cast<int>(Session::current()->devices().size()); }

/// Checks what a call in stream order needs. Nothing is submitted; a capture has no such nodes.
CUresult readyInStream(CUstream stream) {
  const CUresult ready = isDefault(stream) ? readyInContext() : Session::ready();
  if (ready != CUDA_SUCCESS) return ready;
  unsigned flags = 0;
  if (const CUresult status = remote::cuStreamGetFlags(stream, &flags); status != CUDA_SUCCESS)
    return status;
  return captures(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

template <class Value>
bool put(void* data, Value value) {
  return std::memcpy(data, &value, sizeof value), true;
}

}  // namespace

/// The worker may still know memory as movable that it keeps pinned.
bool freeManaged(CUdeviceptr address, CUresult& status) {
  const auto range = findHostRange(address);
  if (!range || !isManaged(*range) || range->begin != address) return false;
  status = moves(address) ? freeMoving(address) : freeShared(HostKind::managed, address);
  return true;
}

void freeManagedOf(CUcontext context) {
  CUresult ignored = CUDA_SUCCESS;
  for (const HostKind kind : {HostKind::managed, HostKind::moving}) {
    for (const HostRange& range : hostRangesOf(context, kind)) freeManaged(range.begin, ignored);
  }
}

bool managedAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  const auto range = findHostRange(address);
  if (!range || !isManaged(*range)) return false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, 1);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return put(data, unsigned{CU_MEMORYTYPE_DEVICE});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put(data, range->bytes);
    default: break;
  }
  if (!isOnGpu(address)) return false;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, range->context);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: return put(data, address);
    default: return false;
  }
}

namespace {

CUresult allocate(std::size_t bytes, unsigned flags, std::uint64_t& address) {
  if (flags == CU_MEM_ATTACH_GLOBAL && canMove(bytes)) {
    const CUresult status = allocateMoving(bytes, address);
    if (status != CUDA_ERROR_OUT_OF_MEMORY) return status;
  }
  return allocateShared(HostKind::managed, bytes, CU_MEMHOSTALLOC_PORTABLE, address);
}

/// What comes back must have been computed.
CUresult movePrefetched(CUdeviceptr begin, std::size_t bytes, CUmemLocation location,
                        CUstream stream) {
  if (!moves(begin)) return CUDA_SUCCESS;
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return moveToGpu(begin, begin + bytes);
  const CUresult status = interposer::cuStreamSynchronize(stream);
  if (status == CUDA_SUCCESS) moveToProgram(begin, begin + bytes);
  return status;
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t address = 0;
  if (const CUresult status = allocate(bytesize, flags, address); status != CUDA_SUCCESS)
    return status;
  managedRanges().add(address, bytesize);
  Session::current()->deviceRanges.add(address, bytesize);
  *dptr = address;
  return CUDA_SUCCESS;
}

CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                        CUmemLocation location) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  const CUresult status = managedRanges().advise(devPtr, count, advice, location, deviceCount());
  if (status == CUDA_SUCCESS && advice == CU_MEM_ADVISE_SET_PREFERRED_LOCATION &&
      location.type != CU_MEM_LOCATION_TYPE_DEVICE && moves(devPtr))
    return keepWithProgram(devPtr);
  return status;
}

CUresult cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return interposer::cuMemAdvise_v2(devPtr, count, advice, wire::managedLocation(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream hStream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult status = readyInStream(hStream); status != CUDA_SUCCESS) return status;
  const CUresult status = managedRanges().prefetch(devPtr, count, location, deviceCount());
  return status == CUDA_SUCCESS ? movePrefetched(devPtr, count, location, hStream) : status;
}

CUresult cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                            CUstream hStream) {
  return interposer::cuMemPrefetchAsync_v2(devPtr, count, wire::managedLocation(dstDevice), 0,
                                           hStream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                 CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                 size_t numPrefetchLocs, unsigned long long flags,
                                 CUstream hStream) {
  if (const CUresult status = readyInStream(hStream); status != CUDA_SUCCESS) return status;
  CUresult status = managedRanges().prefetchBatch(
      {dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags}, deviceCount());
  for (size_t i = 0, location = 0; i < count && status == CUDA_SUCCESS; ++i) {
    while (location + 1 < numPrefetchLocs && prefetchLocIdxs[location + 1] <= i) ++location;
    status = movePrefetched(dptrs[i], sizes[i], prefetchLocs[location], hStream);
  }
  return status;
}

CUresult cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream hStream) {
  if (const CUresult status = readyInStream(hStream); status != CUDA_SUCCESS) return status;
  return managedRanges().discardBatch(dptrs, sizes, count, flags);
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                           CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                           size_t numPrefetchLocs, unsigned long long flags,
                                           CUstream hStream) {
  return interposer::cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                             numPrefetchLocs, flags, hStream);
}

CUresult cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                CUdeviceptr devPtr, size_t count) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  return managedRanges().query(data, dataSize, attribute, devPtr, count);
}

CUresult cuMemRangeGetAttributes(void** data, size_t* dataSizes, CUmem_range_attribute* attributes,
                                 size_t numAttributes, CUdeviceptr devPtr, size_t count) {
  if (const CUresult status = readyInContext(); status != CUDA_SUCCESS) return status;
  return managedRanges().queryAll(data, dataSizes, attributes, numAttributes, devPtr, count);
}

CUresult cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                unsigned int flags) {
  if (const CUresult status = readyInStream(hStream); status != CUDA_SUCCESS) return status;
  return managedRanges().attach(dptr, length, flags, hStream == nullptr);
}

}  // namespace interposer
