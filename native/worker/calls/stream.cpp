#include <functional>

#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

CUresult make(Thread& thread, CUstream* stream, const std::function<CUresult()>& call) {
  return thread.session.streams.make(thread.owner(), stream, call);
}

}  // namespace

CUresult cuStreamCreate(Thread& thread, CUstream* phStream, unsigned int Flags) {
  return make(thread, phStream, [&] { return thread.driver.cuStreamCreate(phStream, Flags); });
}

CUresult cuStreamCreateWithPriority(Thread& thread, CUstream* phStream, unsigned int flags,
                                    int priority) {
  return make(thread, phStream,
              [&] { return thread.driver.cuStreamCreateWithPriority(phStream, flags, priority); });
}

CUresult cuStreamDestroy_v2(Thread& thread, CUstream hStream) {
  const CUresult status = thread.session.streams.destroy(hStream, thread.isCaptured(hStream));
  if (status == CUDA_SUCCESS)
    thread.session.handles.remove(thread.session.captures.destroyed(hStream));
  thread.session.codeEnded();
  return status;
}

/// After a launch or a small copy, waits for a word that the GPU writes, which is faster than the
/// driver's call.
CUresult cuStreamSynchronize(Thread& thread, CUstream hStream) {
  const bool followed = thread.followsWork(hStream);
  thread.passTicket(hStream);
  if (!followed || !thread.completion.await()) return thread.driver.cuStreamSynchronize(hStream);
  thread.session.memory.pools().synchronized();
  return CUDA_SUCCESS;
}

CUresult cuStreamGetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUstreamAttrID>();
  if (!in.finished()) return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  CUstreamAttrValue value{};
  const CUresult status = thread.driver.cuStreamGetAttribute(stream, attribute, &value);
  out.put(value);
  return status;
}

CUresult cuStreamSetAttribute(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  const auto handle = in.get<std::uint64_t>();
  const auto attribute = in.get<CUstreamAttrID>();
  const auto value = in.get<CUstreamAttrValue>();
  if (!in.finished()) return thread.refuseFrame();
  CUstream stream = nullptr;
  if (const CUresult status = thread.find<CUstream>(handle, &stream); status != CUDA_SUCCESS)
    return status;
  return thread.driver.cuStreamSetAttribute(stream, attribute, &value);
}

}  // namespace worker
