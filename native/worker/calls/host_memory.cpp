#include "native/worker/log.h"
#include "native/worker/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

void release(Thread& thread, std::uint64_t bytes) {
  thread.session.quota.refundPinned(bytes);
  discount(thread.session.figures.pinned, bytes);
}

}  // namespace

/// The client has made the memory; here it is mapped at the same address and registered, which makes it pinned memory as fast as any.
CUresult cuMemHostAlloc(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto id = in.get<std::uint64_t>();
  const auto address = in.get<std::uint64_t>();
  const auto bytes = in.get<std::uint64_t>();
  const auto flags = in.get<unsigned>();
  if (!in.finished()) return thread.refuseFrame();
  SharedMemory& shared = thread.session.shared;
  if (!shared.map(id, address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (!thread.session.pinnedFits(bytes)) return shared.unmap(address), CUDA_ERROR_OUT_OF_MEMORY;
  const unsigned registration = CU_MEMHOSTREGISTER_DEVICEMAP | (flags & CU_MEMHOSTALLOC_PORTABLE ? CU_MEMHOSTREGISTER_PORTABLE : 0);
  const CUresult status = thread.driver.cuMemHostRegister_v2(reinterpret_cast<void*>(address), bytes, registration);
  if (status != CUDA_SUCCESS) return release(thread, shared.unmap(address)), status;
  CUcontext context = nullptr;
  thread.driver.cuCtxGetCurrent(&context);
  shared.registered(address, context);
  return CUDA_SUCCESS;
}

/// The registration may have ended with its context already; the mapping has not. Otherwise a refusal of the driver means that the GPU may
/// still reach the memory.
CUresult cuMemFreeHost(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto address = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (!thread.session.shared.contains(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  thread.passTicket();  // natively too it waits for copies that use the memory
  const CUresult status = thread.driver.cuMemHostUnregister(reinterpret_cast<void*>(address));
  const bool ended =
      status == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED || status == CUDA_ERROR_INVALID_VALUE || thread.session.shared.outlived(address);
  if (status != CUDA_SUCCESS && !ended) return status;
  const std::uint64_t bytes = thread.session.shared.unmap(address);
  release(thread, bytes);
  return bytes > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace worker
