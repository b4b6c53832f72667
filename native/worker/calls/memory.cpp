// All calls that allocate device memory. The quota is charged before the driver is called, and
// refunded when the driver refuses or the memory is freed.
#include <algorithm>
#include <memory>

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

bool charge(Thread& thread, std::uint64_t bytes) {
  Session& session = thread.session;
  const RelaxedCapture relaxed(thread.driver, session.captures);
  if (session.quota.tryCharge(bytes)) return true;
  const bool mayWait = !session.captures.any();  // it would invalidate the capture
  if ((session.pools.settle() || session.pendingFrees != 0) && mayWait) {
    thread.passTicket();
    thread.driver.cuCtxSynchronize();
  }
  return session.quota.charge(bytes);
}

void remember(Thread& thread, std::uint64_t key, std::uint64_t bytes) {
  thread.session.quota.remember(key, bytes, thread.owner());
}

namespace {

/// The largest pitch that the driver may choose: the width, rounded up to 512 (H200, driver 580) or
/// to the device's alignment if that is larger.
std::uint64_t widestPitch(const Driver& driver, std::uint64_t width) {
  CUdevice device = 0;
  std::uint64_t unit = 512;
  driver.cuCtxGetDevice(&device);
  for (const CUdevice_attribute attribute :
       {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
        CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT}) {
    int alignment = 0;
    if (driver.cuDeviceGetAttribute(&alignment, attribute, device) == CUDA_SUCCESS && alignment > 0)
      unit = std::max(unit, static_cast<std::uint64_t>(alignment));
  }
  return width > ~std::uint64_t{0} - unit ? width : (width + unit - 1) / unit * unit;
}

/// Saturates on overflow: that is more than any GPU has.
std::uint64_t pitchedBytes(std::uint64_t pitch, std::uint64_t height) {
  std::uint64_t bytes = 0;
  return __builtin_mul_overflow(pitch, height, &bytes) ? ~std::uint64_t{0} : bytes;
}

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

/// Calls `free` on a charged address; calls `refund` with its charge on success.
template <class Free, class Refund>
CUresult freeCharged(Thread& thread, CUdeviceptr address, const Quota::Charge& charge, Free free,
                     Refund refund) {
  const CUresult status = free(address);
  if (status == CUDA_SUCCESS)
    refund(charge);
  else
    thread.session.quota.remember(address, charge.bytes, charge.owner);
  return status;
}

/// Memory that is freed in stream order. Its charge is recorded under the address of this object,
/// because the memory's address may be reused before the callback.
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

/// Refunds when the stream reaches this point. If the context dies first, the driver does not call
/// back; the end of the context refunds.
void refundBehind(Thread& thread, CUstream stream, const Quota::Charge& charge) {
  auto* pending = new PendingFree{thread.session};
  ++thread.session.pendingFrees;
  thread.session.quota.remember(pending->key(), charge.bytes, charge.owner);
  if (thread.driver.cuLaunchHostFunc(stream, refundPending, pending) == CUDA_SUCCESS) return;
  thread.passTicket(stream);
  thread.driver.cuStreamSynchronize(stream);
  refundPending(pending);
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
  CUdevice device = 0;
  if ((status = driver.cuCtxPushCurrent_v2(context)) != CUDA_SUCCESS) return status;
  status = driver.cuCtxGetDevice(&device);
  driver.cuCtxPopCurrent_v2(&context);
  return status == CUDA_SUCCESS ? driver.cuDeviceGetMemPool(pool, device) : status;
}

template <class Allocate>
CUresult allocateFrom(Thread& thread, CUmemoryPool pool, size_t bytes, CUstream stream,
                      CUdeviceptr* address, Allocate allocate) {
  const CUresult status =
      thread.session.pools.allocate(pool, bytes, stream, address, allocate, [&] {
        if (thread.session.captures.any()) return CUDA_SUCCESS;  // would invalidate the capture
        thread.session.fileExports.settle();
        thread.passTicket(stream);
        return thread.driver.cuCtxSynchronize();
      });
  thread.session.watchPools();
  return status;
}

}  // namespace

/// Reports the quota, not the GPU: total is the limit, free is what no worker of the allocation
/// holds.
CUresult cuMemGetInfo_v2(Thread& thread, size_t* free, size_t* total) {
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
  const std::uint64_t bytes = rounded(bytesize);
  if (!charge(thread, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status = thread.driver.cuMemAlloc_v2(dptr, bytesize);
  if (status == CUDA_SUCCESS)
    remember(thread, *dptr, bytes);
  else
    thread.session.quota.refund(bytes);
  return status;
}

/// The driver returns the pitch only after allocating. So the maximum is charged first and
/// corrected afterwards.
CUresult cuMemAllocPitch_v2(Thread& thread, CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes,
                            size_t Height, unsigned int ElementSizeBytes) {
  Quota& quota = thread.session.quota;
  const std::uint64_t most =
      rounded(pitchedBytes(widestPitch(thread.driver, WidthInBytes), Height));
  if (!charge(thread, most)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult status =
      thread.driver.cuMemAllocPitch_v2(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  if (status != CUDA_SUCCESS) return quota.refund(most), status;
  const std::uint64_t bytes = rounded(pitchedBytes(*pPitch, Height));
  if (bytes > most && !quota.charge(bytes - most)) {
    thread.driver.cuMemFree_v2(*dptr);
    quota.refund(most);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (bytes < most) quota.refund(most - bytes);
  remember(thread, *dptr, bytes);
  return CUDA_SUCCESS;
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
  thread.session.sharing.ended(ExportTable::Kind::memory, dptr);
  return freeCharged(thread, dptr, *charge, free,
                     [&](const Quota::Charge& freed) { thread.session.quota.refund(freed.bytes); });
}

/// A captured allocation becomes a node, whose memory is charged with the executable graph.
CUresult cuMemAllocAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {
  if (thread.isCaptured(hStream)) return thread.driver.cuMemAllocAsync(dptr, bytesize, hStream);
  CUmemoryPool pool = nullptr;
  if (const CUresult status = poolOf(thread, hStream, &pool); status != CUDA_SUCCESS) return status;
  return allocateFrom(thread, pool, bytesize, hStream, dptr,
                      [&] { return thread.driver.cuMemAllocAsync(dptr, bytesize, hStream); });
}

CUresult cuMemAllocFromPoolAsync(Thread& thread, CUdeviceptr* dptr, size_t bytesize,
                                 CUmemoryPool pool, CUstream hStream) {
  if (thread.isCaptured(hStream))
    return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  return allocateFrom(thread, pool, bytesize, hStream, dptr, [&] {
    return thread.driver.cuMemAllocFromPoolAsync(dptr, bytesize, pool, hStream);
  });
}

/// Also frees memory of cuMemAlloc_v2.
CUresult cuMemFreeAsync(Thread& thread, CUdeviceptr dptr, CUstream hStream) {
  if (thread.isCaptured(hStream)) return thread.driver.cuMemFreeAsync(dptr, hStream);
  const auto free = [&](CUdeviceptr address) {
    return thread.driver.cuMemFreeAsync(address, hStream);
  };
  const auto charge = thread.session.quota.take(dptr);
  if (!charge)
    return freeUncharged(thread, dptr, free, [&](const ExportTable::Found& found) {
      closeBehind(thread, hStream, found);
    });
  thread.session.sharing.ended(ExportTable::Kind::memory, dptr);
  return freeCharged(thread, dptr, *charge, free,
                     [&](const Quota::Charge& freed) { refundBehind(thread, hStream, freed); });
}

}  // namespace worker
