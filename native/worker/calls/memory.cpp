// All calls that allocate device memory. The quota is charged before the driver is called, and
// refunded when the driver refuses or the memory is freed.
#include <algorithm>
#include <memory>
#include <utility>

#include "native/worker/calls/device_memory.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

std::uint64_t rounded(std::uint64_t bytes) {
  constexpr std::uint64_t kSmall = std::uint64_t{1} << 20;
  constexpr std::uint64_t kUnit = 512;
  constexpr std::uint64_t kPage = std::uint64_t{2} << 20;
  const std::uint64_t unit = bytes <= kSmall ? kUnit : kPage;
  return bytes > ~std::uint64_t{0} - unit ? bytes : (bytes + unit - 1) / unit * unit;
}

namespace {

/// Waits for the work of the current context, beside other threads. They may begin a capture, which
/// cuCtxSynchronize would invalidate. So an event is recorded in the thread's turn, when no stream
/// captures. Drivers before CUDA 12.5 lack the call. `used`: as for Thread::passTicket().
void awaitWork(Thread& thread, const void* used = nullptr) {
  const Driver& driver = thread.driver;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  const bool recorded = driver.cuCtxRecordEvent != nullptr &&
                        driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS &&
                        driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS &&
                        driver.cuCtxRecordEvent(context, event) == CUDA_SUCCESS;
  thread.passTicket(used);
  const RelaxedCapture relaxed(driver);
  recorded ? driver.cuEventSynchronize(event) : driver.cuCtxSynchronize();
  if (event != nullptr) driver.cuEventDestroy_v2(event);
}

}  // namespace

bool charge(Thread& thread, std::uint64_t bytes) {
  Session& session = thread.session;
  const RelaxedCapture relaxed(thread.driver, session.captures);
  if (session.quota.tryCharge(bytes)) return true;
  const bool mayWait = !session.captures.any();  // it would invalidate the capture
  const bool pending = session.pendingFrees.any();
  if ((session.pools.settle() || pending) && mayWait) awaitWork(thread);
  if (pending) session.pendingFrees.settle();
  return session.quota.charge(bytes);
}

void remember(Thread& thread, std::uint64_t key, std::uint64_t bytes) {
  thread.session.quota.remember(key, bytes, thread.owner());
}

namespace {

/// An address that no allocation has. It is freed instead of an unknown address, which another
/// thread may be freeing right now. The driver then returns the error for the context or the
/// address.
constexpr CUdeviceptr kNowhere = 1;

/// Frees memory of no allocation call: memory of a graph's node, or none.
template <class Free>
CUresult freeOther(Thread& thread, CUdeviceptr address, Free free) {
  if (!thread.session.graphMemory.gives(address)) return free(address == 0 ? 0 : kNowhere);
  const CUresult status = free(address);
  thread.session.graphMemory.settle();
  return status;
}

/// Frees memory without a charge of its own: of a pool, also an imported one, or of a graph's node.
/// Calls `close` with the export of imported memory.
template <class Free, class Close>
CUresult freeUncharged(Thread& thread, CUdeviceptr address, Free free, Close close) {
  Sharing& sharing = thread.session.sharing;
  if (sharing.sharesPools()) {
    sharing.ended(ExportTable::Kind::poolPointer, address);
    if (const auto opening = sharing.take(address, ExportTable::Kind::poolPointer)) {
      const CUresult status = free(address);
      if (status == CUDA_SUCCESS)
        close(opening->found);
      else
        sharing.opened(address, nullptr, opening->found);
      return status;
    }
  }
  CUresult status = CUDA_SUCCESS;
  return thread.session.pools.free(
             address, [&] { return free(address); }, status)
             ? status
             : freeOther(thread, address, free);
}

/// Others cannot open the memory from now on.
void endExports(Session& session, CUdeviceptr address) {
  session.fileExports.ended({ExportTable::Kind::memoryFile, address});
  session.sharing.ended(ExportTable::Kind::memory, address);
}

struct PendingClose {
  Sharing& sharing;
  ExportTable::Found found;
};

void closePending(void* argument) {
  const std::unique_ptr<PendingClose> pending(static_cast<PendingClose*>(argument));
  pending->sharing.release(pending->found);
}

/// Imported memory counts as held until the stream has freed it. If the context dies first, it is
/// held until the session ends.
void closeBehind(Thread& thread, CUstream stream, const ExportTable::Found& found) {
  auto* pending = new PendingClose{thread.session.sharing, found};
  if (thread.driver.cuLaunchHostFunc(stream, closePending, pending) == CUDA_SUCCESS) return;
  thread.passTicket(stream);
  thread.driver.cuStreamSynchronize(stream);
  closePending(pending);
}

/// The current pool of the stream's device, which the stream allocates from.
CUresult poolOf(const Thread& thread, CUstream stream, CUmemoryPool* pool) {
  const Driver& driver = thread.driver;
  CUcontext context = nullptr;
  // default stream: the current context
  const bool implicit = reinterpret_cast<std::uintptr_t>(stream) <= 2;
  CUresult status =
      implicit ? driver.cuCtxGetCurrent(&context) : driver.cuStreamGetCtx(stream, &context);
  if (status != CUDA_SUCCESS) return status;
  // A runtime whose first call is cudaMallocAsync makes a context after this error, and tries
  // again.
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  CUdevice device = 0;
  if ((status = driver.cuCtxPushCurrent_v2(context)) != CUDA_SUCCESS) return status;
  status = driver.cuCtxGetDevice(&device);
  driver.cuCtxPopCurrent_v2(&context);
  return status == CUDA_SUCCESS ? driver.cuDeviceGetMemPool(pool, device) : status;
}

template <class Allocate>
CUresult allocate(Thread& thread, CUdeviceptr* address, std::uint64_t asked, Allocate allocate) {
  const std::uint64_t bytes = rounded(asked);
  if (!charge(thread, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult status = allocate();
  if (status == CUDA_ERROR_OUT_OF_MEMORY && thread.session.pendingFrees.any()) {
    thread.session.pendingFrees.settle();  // the GPU was full of memory that streams have freed
    status = allocate();
  }
  if (status == CUDA_SUCCESS)
    remember(thread, *address, bytes);
  else
    thread.session.quota.refund(bytes);
  thread.session.slack.settle();
  return status;
}

template <class Allocate>
CUresult allocateFrom(Thread& thread, CUmemoryPool pool, size_t bytes, CUstream stream,
                      CUdeviceptr* address, Allocate allocate) {
  bool waited = false;  // once: then the turn has passed, and other threads may capture
  const CUresult status =
      thread.session.pools.allocate(pool, bytes, stream, address, allocate, [&] {
        if (std::exchange(waited, true)) return CUDA_SUCCESS;
        if (thread.session.captures.any()) return CUDA_SUCCESS;  // would invalidate the capture
        thread.session.fileExports.settle();
        awaitWork(thread, stream);
        return CUDA_SUCCESS;
      });
  thread.session.watchPools();
  return status;
}

}  // namespace

/// Reports the quota, not the GPU: total is the limit, free is what no worker of the allocation
/// holds.
CUresult cuMemGetInfo_v2(Thread& thread, size_t* free, size_t* total) {
  thread.session.pendingFrees.settle();
  size_t gpuFree = 0;
  size_t gpuTotal = 0;
  if (const CUresult status = thread.driver.cuMemGetInfo_v2(&gpuFree, &gpuTotal);
      status != CUDA_SUCCESS)
    return status;
  const Quota& quota = thread.session.quota;
  const std::uint64_t limit = quota.limit();
  if (limit == 0) return *free = gpuFree, *total = gpuTotal, CUDA_SUCCESS;
  thread.session.fileExports.settle();
  thread.session.pools.settle();
  const std::uint64_t used = quota.used();
  *total = std::min<std::uint64_t>(gpuTotal, limit);
  *free = std::min<std::uint64_t>(gpuFree, used < *total ? *total - used : 0);
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(Thread& thread, CUdeviceptr* dptr, size_t bytesize) {
  return allocate(thread, dptr, bytesize,
                  [&] { return thread.driver.cuMemAlloc_v2(dptr, bytesize); });
}

CUresult cuMemAllocPitch_v2(Thread& thread, CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes,
                            size_t Height, unsigned int ElementSizeBytes) {
  const std::uint64_t bytes = MovableMemory::pitchedBytes(WidthInBytes, Height);
  return allocate(thread, dptr, bytes, [&] {
    return thread.driver.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  });
}

/// take() removes the record, so only one caller frees the address. A second free gets the driver's
/// error.
CUresult cuMemFree_v2(Thread& thread, CUdeviceptr dptr) {
  const auto free = [&](CUdeviceptr address) { return thread.driver.cuMemFree_v2(address); };
  const auto charge = thread.session.quota.take(dptr);
  // The driver waits for work that uses the memory.
  thread.passTicket(charge ? charge->owner : nullptr);
  if (!charge)
    return freeUncharged(thread, dptr, free, [&](const ExportTable::Found& found) {
      thread.session.sharing.release(found);
    });
  endExports(thread.session, dptr);
  const CUresult status = free(dptr);
  thread.session.slack.settle();  // first, so that no byte is without a charge in between
  if (status == CUDA_SUCCESS)
    thread.session.quota.refund(charge->bytes);
  else
    thread.session.quota.remember(dptr, charge->bytes, charge->owner);
  return status;
}

/// A captured allocation becomes a node, whose memory is charged with the executable graph.
CUresult cuMemAllocAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  if (thread.isCaptured(hStream)) return thread.driver.cuMemAllocAsync(dptr, bytesize, hStream);
  CUmemoryPool pool = nullptr;
  if (const CUresult status = poolOf(thread, hStream, &pool); status != CUDA_SUCCESS) return status;
  return allocateFrom(thread, pool, bytesize, hStream, dptr, [&] {
    // from the pool that is charged: another thread may choose another one
    return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  });
}

CUresult cuMemAllocFromPoolAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize,
                                 CUmemoryPool pool, CUstream hStream) {
  if (thread.isCaptured(hStream))
    return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  return allocateFrom(thread, pool, bytesize, hStream, dptr, [&] {
    return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  });
}

/// Also frees memory of cuMemAlloc_v2. A free that is not captured may enqueue a host function that
/// runs once, so the driver is asked also if no capture is known.
CUresult cuMemFreeAsync(Thread& thread, CUdeviceptr dptr, CUstream hStream) {
  if (thread.session.captures.includes(hStream)) return thread.driver.cuMemFreeAsync(dptr, hStream);
  const auto free = [&](CUdeviceptr address) {
    return thread.driver.cuMemFreeAsync(address, hStream);
  };
  const auto charge = thread.session.quota.take(dptr);
  if (!charge)
    return freeUncharged(thread, dptr, free, [&](const ExportTable::Found& found) {
      closeBehind(thread, hStream, found);
    });
  endExports(thread.session, dptr);
  const CUresult status = thread.session.pendingFrees.add(thread.driver, hStream, dptr, *charge);
  if (status == CUDA_SUCCESS)
    thread.session.watchPools();
  else
    thread.session.quota.remember(dptr, charge->bytes, charge->owner);
  return status;
}

}  // namespace worker
