#include "native/worker/reports/log.h"
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

void release(Thread& thread, std::uint64_t bytes) {
  thread.session.quota.refundPinned(bytes);
  discount(thread.session.figures.pinned, bytes);
}

}  // namespace

/// The client has allocated the memory. The worker maps it at the same address and registers it
/// with the driver, so that it is pinned.
CUresult cuMemHostAlloc(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto id = in.get<std::uint64_t>();
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (!shared.map(id, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!thread.session.pinnedFits(bytes)) return shared.unmap(address), CUDA_ERROR_OUT_OF_MEMORY;
  const unsigned registration =
      CU_MEMHOSTREGISTER_DEVICEMAP |
      (flags & CU_MEMHOSTALLOC_PORTABLE ? CU_MEMHOSTREGISTER_PORTABLE : 0);
  const CUresult status =
      thread.driver.cuMemHostRegister_v2(reinterpret_cast<void*>(address), bytes, registration);
  if (status != CUDA_SUCCESS) return release(thread, shared.unmap(address)), status;
  CUcontext context = nullptr;
  thread.driver.cuCtxGetCurrent(&context);
  shared.registered(address, context);
  return CUDA_SUCCESS;
}

/// The registration may already have ended with its context, but the mapping remains. If the driver
/// refuses for another reason, the GPU may still access the memory, so the mapping stays.
CUresult cuMemFreeHost(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (!shared.claim(address)) return CUDA_ERROR_INVALID_VALUE;
  thread.passTicket();  // the driver waits here for copies that use the memory
  const CUresult status = thread.driver.cuMemHostUnregister(reinterpret_cast<void*>(address));
  const bool ended = status == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED ||
                     status == CUDA_ERROR_INVALID_VALUE || shared.outlived(address);
  if (status != CUDA_SUCCESS && !ended) return shared.keep(address), status;
  release(thread, shared.unmap(address));
  return CUDA_SUCCESS;
}

}  // namespace worker
