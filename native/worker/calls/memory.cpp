// Every way of getting device memory: charged to the quota before the driver is asked, refunded when it refuses or the memory is freed.
#include <algorithm>

#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Charges, allocates, and remembers what was charged under the address.
template <class Allocate>
CUresult charged(Quota& quota, std::uint64_t bytes, CUdeviceptr* address, Allocate allocate) {
  if (!quota.charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = allocate();
  if (status == CUDA_SUCCESS)
    quota.remember(*address, bytes);
  else
    quota.refund(bytes);
  return status;
}

}  // namespace

/// The slice, not the GPU: what the allocation may have, and what of it none of its processes has.
CUresult cuMemGetInfo_v2(Thread& thread, size_t* free, size_t* total) {
  size_t gpuFree = 0;
  size_t gpuTotal = 0;
  if (const CUresult status = thread.driver.cuMemGetInfo_v2(&gpuFree, &gpuTotal); status != CUDA_SUCCESS) return status;
  const Quota& quota = thread.session.quota;
  const std::uint64_t limit = quota.limit();
  if (limit == 0) return *free = gpuFree, *total = gpuTotal, CUDA_SUCCESS;
  const std::uint64_t used = quota.used();
  *total = std::min<std::uint64_t>(gpuTotal, limit);
  *free = std::min<std::uint64_t>(gpuFree, used < *total ? *total - used : 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(Thread& thread, CUdeviceptr* dptr, size_t bytesize) {
  return charged(thread.session.quota, bytesize, dptr, [&] { return thread.driver.cuMemAlloc_v2(dptr, bytesize); });
}

CUresult cuMemAllocPitch_v2(Thread& thread, CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  // What the driver will round the width to is known only afterwards.
  const CUresult status = thread.driver.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  if (status != CUDA_SUCCESS) return status;
  if (thread.session.quota.charge(*pPitch * Height)) return thread.session.quota.remember(*dptr, *pPitch * Height), CUDA_SUCCESS;
  thread.driver.cuMemFree_v2(*dptr);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(Thread& thread, CUdeviceptr dptr) {
  thread.passTicket();  // natively too it waits for the work that may use the memory
  const CUresult status = thread.driver.cuMemFree_v2(dptr);
  if (status == CUDA_SUCCESS) thread.session.quota.forget(dptr);
  return status;
}

CUresult cuMemAllocAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  return charged(thread.session.quota, bytesize, dptr, [&] { return thread.driver.cuMemAllocAsync(dptr, bytesize, hStream); });
}

CUresult cuMemAllocFromPoolAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return charged(thread.session.quota, bytesize, dptr,
                 [&] { return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream); });
}

CUresult cuMemFreeAsync(Thread& thread, CUdeviceptr dptr, CUstream hStream) {
  const CUresult status = thread.driver.cuMemFreeAsync(dptr, hStream);
  if (status == CUDA_SUCCESS) thread.session.quota.forget(dptr);
  return status;
}

/// Memory on the device only: pools of host memory and pools that another process could import are not offered.
CUresult cuMemPoolCreate(Thread& thread, CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  return thread.driver.cuMemPoolCreate(pool, poolProps);
}

CUresult cuMemPoolSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUmemPool_attribute>();
  auto value = in.get<cuuint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(handle, &pool); status != CUDA_SUCCESS) return status;
  return thread.driver.cuMemPoolSetAttribute(pool, attribute, &value);
}

CUresult cuMemPoolGetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUmemPool_attribute>();
  if (!in.finished()) return thread.refuseFrame();
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(handle, &pool); status != CUDA_SUCCESS) return status;
  cuuint64_t value = 0;
  const CUresult status = thread.driver.cuMemPoolGetAttribute(pool, attribute, &value);
  out.put(value);
  return status;
}

}  // namespace worker
