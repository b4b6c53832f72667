// Memory that the program maps itself. It is charged when it is created, and until it is neither held nor mapped.
#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

CUresult cuMemCreate(Thread& thread, CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                     unsigned long long flags) {
  if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE || prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  Quota& quota = thread.session.quota;
  if (!quota.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemCreate(handle, size, prop, flags);
  if (status == CUDA_SUCCESS)
    thread.session.physicalMemory.created(*handle, size);
  else
    quota.refund(size);
  return status;
}

/// The handle ends with its last reference; what is still mapped goes on to cost.
CUresult cuMemRelease(Thread& thread, CUmemGenericAllocationHandle handle) {
  const CUresult status = thread.driver.cuMemRelease(handle);
  if (status != CUDA_SUCCESS) return status;
  const auto [freed, ended] = thread.session.physicalMemory.released(handle);
  thread.session.quota.refund(freed);
  if (ended) thread.session.handles.remove(thread.add(wire::HandleKind::genericAllocation, handle));
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(Thread& thread, CUmemGenericAllocationHandle* handle, void* addr) {
  const CUresult status = thread.driver.cuMemRetainAllocationHandle(handle, addr);
  if (status == CUDA_SUCCESS) thread.session.physicalMemory.retained(*handle);
  return status;
}

CUresult cuMemMap(Thread& thread, CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
  const CUresult status = thread.driver.cuMemMap(ptr, size, offset, handle, flags);
  if (status == CUDA_SUCCESS) thread.session.physicalMemory.mapped(handle, ptr, size);
  return status;
}

CUresult cuMemUnmap(Thread& thread, CUdeviceptr ptr, size_t size) {
  const CUresult status = thread.driver.cuMemUnmap(ptr, size);
  if (status == CUDA_SUCCESS) thread.session.quota.refund(thread.session.physicalMemory.unmapped(ptr, size));
  return status;
}

}  // namespace worker
