// Calls about managed memory.
#include "native/simulator/device.h"
#include "native/simulator/managed_memory.h"
#include "native/simulator/memory.h"
#include "native/simulator/stream_capture.h"

namespace simulator {
namespace {

int deviceCount() { return static_cast<int>(devices().size()); }

/// Runs body() for a call that a stream orders. Nothing is submitted, so only the capture counts.
template <class Body>
CUresult inStream(CUstream handle, Body&& body) {
  return onStream(handle, [&](Context&, Stream& stream) -> CUresult {
    const CUresult status = refusedInCapture(stream);
    return status == CUDA_SUCCESS ? body() : status;
  });
}

}  // namespace
}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return outsideCapture([&](Context& context) -> CUresult {
    if (dptr == nullptr || bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
      return CUDA_ERROR_INVALID_VALUE;
    const std::uint64_t address = allocate(context, bytesize, MemoryKind::managed);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *dptr = address;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice,
                           CUmemLocation location) {
  return inContext([&](Context&) {
    return managedRanges().advise(devPtr, count, advice, location, deviceCount());
  });
}

DRIVER_CALL cuMemAdvise(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUdevice device) {
  return cuMemAdvise_v2(devPtr, count, advice, wire::managedLocation(device));
}

DRIVER_CALL cuMemPrefetchAsync_v2(CUdeviceptr devPtr, size_t count, CUmemLocation location,
                                  unsigned int flags, CUstream hStream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return inStream(hStream,
                  [&] { return managedRanges().prefetch(devPtr, count, location, deviceCount()); });
}

DRIVER_CALL cuMemPrefetchAsync(CUdeviceptr devPtr, size_t count, CUdevice dstDevice,
                               CUstream hStream) {
  return cuMemPrefetchAsync_v2(devPtr, count, wire::managedLocation(dstDevice), 0, hStream);
}

DRIVER_CALL cuMemPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                    CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                    size_t numPrefetchLocs, unsigned long long flags,
                                    CUstream hStream) {
  return inStream(hStream, [&] {
    return managedRanges().prefetchBatch(
        {dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs, flags},
        deviceCount());
  });
}

DRIVER_CALL cuMemDiscardBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                   unsigned long long flags, CUstream hStream) {
  return inStream(hStream,
                  [&] { return managedRanges().discardBatch(dptrs, sizes, count, flags); });
}

DRIVER_CALL cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* dptrs, size_t* sizes, size_t count,
                                              CUmemLocation* prefetchLocs, size_t* prefetchLocIdxs,
                                              size_t numPrefetchLocs, unsigned long long flags,
                                              CUstream hStream) {
  return cuMemPrefetchBatchAsync(dptrs, sizes, count, prefetchLocs, prefetchLocIdxs,
                                 numPrefetchLocs, flags, hStream);
}

DRIVER_CALL cuMemRangeGetAttribute(void* data, size_t dataSize, CUmem_range_attribute attribute,
                                   CUdeviceptr devPtr, size_t count) {
  return inContext(
      [&](Context&) { return managedRanges().query(data, dataSize, attribute, devPtr, count); });
}

DRIVER_CALL cuMemRangeGetAttributes(void** data, size_t* dataSizes,
                                    CUmem_range_attribute* attributes, size_t numAttributes,
                                    CUdeviceptr devPtr, size_t count) {
  return inContext([&](Context&) {
    return managedRanges().queryAll(data, dataSizes, attributes, numAttributes, devPtr, count);
  });
}

DRIVER_CALL cuStreamAttachMemAsync(CUstream hStream, CUdeviceptr dptr, size_t length,
                                   unsigned int flags) {
  return inStream(hStream,
                  [&] { return managedRanges().attach(dptr, length, flags, hStream == nullptr); });
}
