// Every way of getting device memory: charged to the quota before the driver is asked, refunded when it refuses or the memory is freed.
#include <algorithm>
#include <memory>

#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// What an allocation takes of the GPU: up to 1 MiB they share pages, above each has its own (measured, driver 580).
std::uint64_t rounded(std::uint64_t bytes) {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
  constexpr std::uint64_t kUnit = 512;
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  const std::uint64_t unit = bytes <= kSmall ? kUnit : kPage;
  return bytes > ~std::uint64_t{0} - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

/// Pools and streams may be about to release memory that the program has freed: then that is waited for.
bool charge(Thread& thread, std::uint64_t bytes) {
  Session& session = thread.session;
  if (session.quota.tryCharge(bytes)) return true;
  if (session.pools.settle() || session.pendingFrees != 0) {
    thread.passTicket();
    thread.driver.cuCtxSynchronize();
  }
  return session.quota.charge(bytes);
}

/// Memory of a context ends with it.
void remember(Thread& thread, CUdeviceptr address, std::uint64_t bytes) {
  CUcontext context = nullptr;
  thread.driver.cuCtxGetCurrent(&context);
  thread.session.quota.remember(address, bytes, context);
}

/// Frees by `free` what was charged; `refund` is called with its charge.
template <class Free, class Refund>
CUresult freeCharged(Thread& thread, CUdeviceptr address, Free free, Refund refund) {
  Quota& quota = thread.session.quota;
  const auto charge = quota.take(address);
  const CUresult status = free();
  if (charge && status == CUDA_SUCCESS) refund(*charge);
  if (charge && status != CUDA_SUCCESS) quota.remember(address, charge->bytes, charge->owner);
  return status;
}

/// Memory that a stream frees when it gets there. Its charge is remembered under the address of this: the memory's own may be given to
/// somebody else before we hear of it.
struct PendingFree {
  Session& session;
  std::uint64_t key() const { return reinterpret_cast<std::uint64_t>(this); }
};

void refundPending(void* argument) {
  const std::unique_ptr<PendingFree> pending(static_cast<PendingFree*>(argument));
  Session& session = pending->session;
  if (const auto charge = session.quota.take(pending->key())) session.quota.refund(charge->bytes);
  --session.pendingFrees;
}

/// Refunds once the stream has come so far. Where the driver never calls back, since the context died, it happens with the context's end.
void refundBehind(Thread& thread, CUstream stream, const Quota::Charge& charge) {
  auto* pending = new PendingFree{thread.session};
  ++thread.session.pendingFrees;
  thread.session.quota.remember(pending->key(), charge.bytes, charge.owner);
  if (thread.driver.cuLaunchHostFunc(stream, refundPending, pending) == CUDA_SUCCESS) return;
  thread.passTicket();
  thread.driver.cuStreamSynchronize(stream);
  refundPending(pending);
}

/// The pool that a stream allocates from: that of its device.
CUresult poolOf(const Thread& thread, CUstream stream, CUmemoryPool* pool) {
  const Driver& driver = thread.driver;
  CUcontext context = nullptr;
  const bool implicit = reinterpret_cast<std::uintptr_t>(stream) <= 2;  // of the current context
  CUresult status = implicit ? driver.cuCtxGetCurrent(&context) : driver.cuStreamGetCtx(stream, &context);
  if (status != CUDA_SUCCESS) return status;
  CUdevice device = 0;
  if ((status = driver.cuCtxPushCurrent_v2(context)) != CUDA_SUCCESS) return status;
  status = driver.cuCtxGetDevice(&device);
  driver.cuCtxPopCurrent_v2(&context);
  return status == CUDA_SUCCESS ? driver.cuDeviceGetMemPool(pool, device) : status;
}

template <class Allocate>
CUresult allocateFrom(Thread& thread, CUmemoryPool pool, size_t bytes, CUstream stream, CUdeviceptr* address, Allocate allocate) {
  const CUresult status = thread.session.pools.allocate(pool, bytes, stream, address, allocate, [&] {
    thread.passTicket();
    return thread.driver.cuCtxSynchronize();
  });
  thread.session.watchPools();
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
  thread.session.pools.settle();
  const std::uint64_t used = quota.used();
  *total = std::min<std::uint64_t>(gpuTotal, limit);
  *free = std::min<std::uint64_t>(gpuFree, used < *total ? *total - used : 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(Thread& thread, CUdeviceptr* dptr, size_t bytesize) {
  const std::uint64_t bytes = rounded(bytesize);
  if (!charge(thread, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemAlloc_v2(dptr, bytesize);
  if (status == CUDA_SUCCESS)
    remember(thread, *dptr, bytes);
  else
    thread.session.quota.refund(bytes);
  return status;
}

CUresult cuMemAllocPitch_v2(Thread& thread, CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                            unsigned int ElementSizeBytes) {
  // What the driver will round the width to is known only afterwards.
  const CUresult status = thread.driver.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  if (status != CUDA_SUCCESS) return status;
  const std::uint64_t bytes = rounded(*pPitch * Height);
  if (charge(thread, bytes)) return remember(thread, *dptr, bytes), CUDA_SUCCESS;
  thread.driver.cuMemFree_v2(*dptr);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemFree_v2(Thread& thread, CUdeviceptr dptr) {
  thread.passTicket();  // natively too it waits for the work that may use the memory
  const auto free = [&] { return thread.driver.cuMemFree_v2(dptr); };
  CUresult status = CUDA_SUCCESS;
  if (thread.session.pools.free(dptr, free, status)) return status;
  return freeCharged(thread, dptr, free, [&](const Quota::Charge& charge) { thread.session.quota.refund(charge.bytes); });
}

CUresult cuMemAllocAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  CUmemoryPool pool = nullptr;
  if (const CUresult status = poolOf(thread, hStream, &pool); status != CUDA_SUCCESS) return status;
  return allocateFrom(thread, pool, bytesize, hStream, dptr, [&] { return thread.driver.cuMemAllocAsync(dptr, bytesize, hStream); });
}

CUresult cuMemAllocFromPoolAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream) {
  return allocateFrom(thread, pool, bytesize, hStream, dptr,
                      [&] { return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream); });
}

/// Also of memory that cuMemAlloc_v2 allocated.
CUresult cuMemFreeAsync(Thread& thread, CUdeviceptr dptr, CUstream hStream) {
  const auto free = [&] { return thread.driver.cuMemFreeAsync(dptr, hStream); };
  CUresult status = CUDA_SUCCESS;
  if (thread.session.pools.free(dptr, free, status)) return status;
  return freeCharged(thread, dptr, free, [&](const Quota::Charge& charge) { refundBehind(thread, hStream, charge); });
}

CUresult cuMemPoolTrimTo(Thread& thread, CUmemoryPool pool, size_t minBytesToKeep) {
  return thread.session.pools.change(pool, [&] { return thread.driver.cuMemPoolTrimTo(pool, minBytesToKeep); });
}

CUresult cuMemPoolDestroy(Thread& thread, CUmemoryPool pool) {
  return thread.session.pools.destroy(pool, [&] { return thread.driver.cuMemPoolDestroy(pool); });
}

/// Memory on the device only: pools of host memory and pools that another process could import are not offered.
CUresult cuMemPoolCreate(Thread& thread, CUmemoryPool* pool, const CUmemPoolProps* poolProps) {
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE || poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult status = thread.driver.cuMemPoolCreate(pool, poolProps);
  if (status == CUDA_SUCCESS) thread.session.pools.created(*pool, poolProps->location.id);
  return status;
}

CUresult cuMemPoolSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUmemPool_attribute>();
  auto value = in.get<cuuint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  CUmemoryPool pool = nullptr;
  if (const CUresult status = thread.find<CUmemoryPool>(handle, &pool); status != CUDA_SUCCESS) return status;
  return thread.session.pools.change(pool, [&] { return thread.driver.cuMemPoolSetAttribute(pool, attribute, &value); });
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
