// Event calls. They also tell the gate about the event, because a window must not end between two
// timed events.
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Decodes a frame of a context and an event, and passes the gate.
CUresult onContext(Thread& thread, wire::Decoder& in, Window window,
                   CUresult (*call)(CUcontext, CUevent)) {
  const auto contextHandle = in.get<std::uint64_t>();
  const auto eventHandle = in.get<std::uint64_t>();
  if (!in.finished()) return thread.refuseFrame();
  if (call == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  if (const CUresult status = thread.find<CUcontext>(contextHandle, &context);
      status != CUDA_SUCCESS)
    return status;
  if (const CUresult status = thread.find<CUevent>(eventHandle, &event); status != CUDA_SUCCESS)
    return status;
  thread.awaitWindow(window, CU_STREAM_LEGACY, 0, {});
  thread.session.gate.recorded(event);
  return call(context, event);
}

}  // namespace

CUresult cuEventCreate(Thread& thread, CUevent* phEvent, unsigned int Flags) {
  const CUresult status = thread.driver.cuEventCreate(phEvent, Flags);
  if (status == CUDA_SUCCESS) thread.session.gate.created(*phEvent, Flags);
  return status;
}

/// Other processes cannot open it any more.
CUresult cuEventDestroy_v2(Thread& thread, CUevent hEvent) {
  thread.session.sharing.ended(ExportTable::Kind::event, reinterpret_cast<std::uint64_t>(hEvent));
  return thread.driver.cuEventDestroy_v2(hEvent);
}

CUresult cuEventRecord(Thread& thread, CUevent hEvent, CUstream hStream) {
  thread.session.gate.recorded(hEvent);
  return thread.driver.cuEventRecord(hEvent, hStream);
}

CUresult cuEventRecordWithFlags(Thread& thread, CUevent hEvent, CUstream hStream,
                                unsigned int flags) {
  thread.session.gate.recorded(hEvent);
  return thread.driver.cuEventRecordWithFlags(hEvent, hStream, flags);
}

CUresult cuCtxRecordEvent(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  return onContext(thread, in, window, thread.driver.cuCtxRecordEvent);
}

CUresult cuCtxWaitEvent(Thread& thread, wire::Decoder& in, wire::Encoder&, Window window) {
  return onContext(thread, in, window, thread.driver.cuCtxWaitEvent);
}

}  // namespace worker
