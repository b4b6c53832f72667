// Memory pools. What is allocated from them is in memory.cpp, what other processes get of them in
// shareable_handle.cpp.
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Whether the quota covers a pool with these properties: only memory that stays on a GPU. Pools of
/// host or managed memory use host memory, which their figures do not show. The device attributes
/// report both as unsupported (devices.cpp).
bool isAccounted(const CUmemLocation& location, CUmemAllocationType type) {
  return location.type == CU_MEM_LOCATION_TYPE_DEVICE && type == CU_MEM_ALLOCATION_TYPE_PINNED;
}

}  // namespace

CUresult cuMemGetDefaultMemPool(Thread& thread, CUmemoryPool* pool_out, CUmemLocation* location,
                                CUmemAllocationType type) {
  if (!isAccounted(*location, type)) return CUDA_ERROR_NOT_SUPPORTED;
  return thread.driver.cuDeviceGetDefaultMemPool(pool_out, location->id);
}

CUresult cuMemGetMemPool(Thread& thread, CUmemoryPool* pool, CUmemLocation* location,
                         CUmemAllocationType type) {
  if (!isAccounted(*location, type)) return CUDA_ERROR_NOT_SUPPORTED;
  return thread.driver.cuDeviceGetMemPool(pool, location->id);
}

CUresult cuMemSetMemPool(Thread& thread, CUmemLocation* location, CUmemAllocationType type,
                         CUmemoryPool pool) {
  if (!isAccounted(*location, type)) return CUDA_ERROR_NOT_SUPPORTED;
  return thread.driver.cuDeviceSetMemPool(location->id, pool);
}

/// Refuses access from the host, which would need the pool's memory pinned or mapped in the worker.
CUresult cuMemPoolSetAccess(Thread& thread, CUmemoryPool pool, const CUmemAccessDesc* map,
                            size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  }
  return thread.driver.cuMemPoolSetAccess(pool, map, count);
}

CUresult cuMemPoolTrimTo(Thread& thread, CUmemoryPool pool, size_t minBytesToKeep) {
  return thread.session.pools.change(
      pool, [&] { return thread.driver.cuMemPoolTrimTo(pool, minBytesToKeep); });
}

CUresult cuMemPoolDestroy(Thread& thread, CUmemoryPool pool) {
  thread.session.fileExports.ended(
      {ExportTable::Kind::pool, reinterpret_cast<std::uint64_t>(pool)});
  return thread.session.pools.destroy(pool, [&] { return thread.driver.cuMemPoolDestroy(pool); });
}

/// Other processes get a pool by file descriptor only. Only known properties are passed to the
/// driver, because one of the others is a pointer.
CUresult cuMemPoolCreate(Thread& thread, CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if ((poolProps->handleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0 ||
      !isAccounted(poolProps->location, poolProps->allocType) || poolProps->usage != 0) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  CUmemPoolProps properties{};
  properties.allocType = poolProps->allocType;
  properties.location = poolProps->location;
  properties.handleTypes = poolProps->handleTypes;
  properties.maxSize = poolProps->maxSize;
  const CUresult status = thread.driver.cuMemPoolCreate(pool, &properties);
  if (status == CUDA_SUCCESS) thread.session.pools.created(*pool, poolProps->location.id);
  return status;
}

CUresult cuMemPoolSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUmemPool_attribute>();
  auto value = in.get<cuuint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(handle, &pool); status != CUDA_SUCCESS)
    return status;
  return thread.session.pools.change(
      pool, [&] { return thread.driver.cuMemPoolSetAttribute(pool, attribute, &value); });
}

CUresult cuMemPoolGetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUmemPool_attribute>();
  if (!in.finished()) return thread.refuseFrame();
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(handle, &pool); status != CUDA_SUCCESS)
    return status;
  cuuint64_t value = 0;
  const CUresult status = thread.driver.cuMemPoolGetAttribute(pool, attribute, &value);
  out.put(value);
  return status;
}

}  // namespace worker
