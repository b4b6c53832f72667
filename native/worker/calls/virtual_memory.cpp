// Memory that the program maps itself. It is charged from its creation until it is neither held nor
// mapped.
#include "native/worker/accounts/page_tables.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Whether addresses lie in the window. There the worker alone maps memory, and the client's calls
/// fail as for memory that the driver manages.
bool inWindow(const Thread& thread, CUdeviceptr address, std::size_t bytes) {
  const wire::AddressRange& window = thread.session.shared.window;
  return address < window.end && (address >= window.begin || bytes > window.begin - address);
}

}  // namespace

/// The charge is recorded under the address and owned by the session, because a reservation
/// outlives every context.
CUresult cuMemAddressReserve(Thread& thread, CUdeviceptr* ptr, size_t size, size_t alignment,
                             CUdeviceptr addr, unsigned long long flags) {
  Quota& quota = thread.session.quota;
  const std::uint64_t bytes = pageTables(size);
  if (!quota.charge(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemAddressReserve(ptr, size, alignment, addr, flags);
  if (status == CUDA_SUCCESS)
    quota.remember(*ptr, bytes, &thread.session);
  else
    quota.refund(bytes);
  return status;
}

CUresult cuMemAddressFree(Thread& thread, CUdeviceptr ptr, size_t size) {
  if (inWindow(thread, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  Quota& quota = thread.session.quota;
  const auto charge = quota.take(ptr);
  if (!charge) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuMemAddressFree(ptr, size);
  if (status == CUDA_SUCCESS)
    quota.refund(charge->bytes);
  else
    quota.remember(ptr, charge->bytes, charge->owner);
  return status;
}

/// Supports only memory that stays on a GPU. Host and managed memory would be pinned in the worker,
/// beyond the limit on pinned memory. Other processes get it by file descriptor only: the other
/// types of handles leave the node. Only known properties are passed to the driver, because one of
/// the others is a pointer.
CUresult cuMemCreate(Thread& thread, CUmemGenericAllocationHandle* handle, size_t size,
                     const CUmemAllocationProp* prop, unsigned long long flags) {
  if ((prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ||
      prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || prop->allocFlags.gpuDirectRDMACapable != 0 ||
      (prop->allocFlags.usage & ~CU_MEM_CREATE_USAGE_TILE_POOL) != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUmemAllocationProp properties{};
  properties.type = prop->type;
  properties.requestedHandleTypes = prop->requestedHandleTypes;
  properties.location = prop->location;
  properties.allocFlags.compressionType = prop->allocFlags.compressionType;
  properties.allocFlags.usage = prop->allocFlags.usage;
  Quota& quota = thread.session.quota;
  if (!quota.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemCreate(handle, size, &properties, flags);
  if (status == CUDA_SUCCESS)
    thread.session.physicalMemory.created(*handle, size);
  else
    quota.refund(size);
  return status;
}

/// The handle ends with its last reference. Memory that is still mapped stays charged.
CUresult cuMemRelease(Thread& thread, CUmemGenericAllocationHandle handle) {
  const CUresult status = thread.driver.cuMemRelease(handle);
  if (status != CUDA_SUCCESS) return status;
  const auto [freed, ended] = thread.session.physicalMemory.released(handle);
  thread.session.quota.refund(freed);
  if (ended) thread.session.handles.remove(thread.add(wire::HandleKind::genericAllocation, handle));
  return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(Thread& thread, CUmemGenericAllocationHandle* handle,
                                     void* addr) {
  if (inWindow(thread, reinterpret_cast<CUdeviceptr>(addr), 1)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuMemRetainAllocationHandle(handle, addr);
  if (status != CUDA_SUCCESS ||
      thread.session.physicalMemory.retained(*handle, reinterpret_cast<std::uint64_t>(addr)))
    return status;
  thread.driver.cuMemRelease(*handle);
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(Thread& thread, CUdeviceptr ptr, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (inWindow(thread, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuMemMap(ptr, size, offset, handle, flags);
  if (status == CUDA_SUCCESS) thread.session.physicalMemory.mapped(handle, ptr, size);
  return status;
}

CUresult cuMemUnmap(Thread& thread, CUdeviceptr ptr, size_t size) {
  if (inWindow(thread, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = thread.driver.cuMemUnmap(ptr, size);
  if (status == CUDA_SUCCESS)
    thread.session.quota.refund(thread.session.physicalMemory.unmapped(ptr, size));
  return status;
}

/// Refuses access from the host, which would need the memory mapped in the worker.
CUresult cuMemSetAccess(Thread& thread, CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc,
                        size_t count) {
  if (inWindow(thread, ptr, size)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return thread.driver.cuMemSetAccess(ptr, size, desc, count);
}

}  // namespace worker
