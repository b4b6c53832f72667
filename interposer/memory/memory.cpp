#include "interposer/memory/managed_memory.h"
#include "interposer/memory/managed_ranges.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// Allocations are recorded here, so that copies to them need not wait.
CUresult remember(CUresult status, CUdeviceptr address, std::size_t bytes) {
  if (status == CUDA_SUCCESS && address != 0) Session::current()->deviceRanges.add(address, bytes);
  return status;
}

/// Memory that is allocated in a capture belongs to the graph: the driver refuses to free it before
/// a launch. It is not recorded, so that calls for it wait for the driver's answer.
CUresult rememberOutsideCapture(CUresult status, CUdeviceptr address, std::size_t bytes) {
  return Session::current()->capturing() ? status : remember(status, address, bytes);
}

}  // namespace

CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = remote::cuMemAlloc_v2(dptr, bytesize);
  return remember(status, *dptr, bytesize);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  if (dptr == nullptr || pPitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status =
      remote::cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  return remember(status, *dptr, *pPitch * Height);
}

CUresult cuMemFree_v2(CUdeviceptr dptr) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  Session::current()->deviceRanges.remove(dptr);
  CUresult status = CUDA_SUCCESS;
  return freeManaged(dptr, status) ? status : remote::cuMemFree_v2(dptr);
}

CUresult cuMemAllocAsync(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = remote::cuMemAllocAsync(dptr, bytesize, hStream);
  return rememberOutsideCapture(status, *dptr, bytesize);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,
                                 CUstream hStream) {
  if (dptr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = remote::cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  return rememberOutsideCapture(status, *dptr, bytesize);
}

/// Freeing a recorded allocation need not wait for the reply. The driver refuses managed memory.
CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  const bool managed = isManaged(dptr);
  DeviceRanges& ranges = Session::current()->deviceRanges;
  const Waiting waiting(managed || !ranges.isAllocation(dptr));
  if (!managed) ranges.remove(dptr);
  return remote::cuMemFreeAsync(dptr, hStream);
}

}  // namespace interposer
