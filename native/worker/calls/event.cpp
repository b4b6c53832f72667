// Event calls. They also tell the gate about the event, because a window must not end between two
// timed events.
#include "native/worker/session/thread.h"
#include "worker_bodies.h"

namespace worker {

CUresult cuEventCreate(Thread& thread, CUevent* phEvent, unsigned int Flags) {
  const CUresult status = thread.driver.cuEventCreate(phEvent, Flags);
  if (status == CUDA_SUCCESS) thread.session.gate.created(*phEvent, Flags);
  return status;
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

}  // namespace worker
