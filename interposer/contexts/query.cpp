// Queries of events and streams, and waits for streams. Programs poll, so an answer of CUDA_SUCCESS
// is repeated without the worker while it must still hold. CUDA_ERROR_NOT_READY always comes from
// the driver.
#include "interposer/contexts/contexts.h"
#include "interposer/session/call.h"
#include "interposer/session/callback.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/wait.h"

namespace interposer {

namespace {

template <class T>
CUresult query(T object, bool mayNote, CUresult (*ask)(T)) {
  Session* const session = Session::current();
  if (session == nullptr || insideCallback()) [[unlikely]]
    return Session::ready();
  Thread& thread = Thread::current();
  const CUcontext context = thread.context();
  if (mayNote && session->mayRepeat() &&
      thread.completed.holds(context, number(object), session->order.changes(),
                             wire::monotonicNanoseconds()))
    return CUDA_SUCCESS;
  const CUresult status = ask(object);
  if (status == CUDA_SUCCESS && mayNote)
    thread.completed.note(context, number(object), thread.changes, wire::monotonicNanoseconds());
  return status;
}

/// Right behind a wait the driver may not know yet that the stream is done (last_wait.h). It is
/// asked again if no call can have given the stream work since.
CUresult askStream(CUstream stream) {
  const Session& session = *Session::current();
  const Thread& thread = Thread::current();
  const std::uint64_t until =
      thread.completed.waitedUntil(thread.context(), number(stream), thread.changes);
  const auto isDone = [&] {
    const std::uint64_t changes = session.order.changes();
    return (!isDefault(stream) && session.lastWait.isOf(number(stream), changes)) ||
           (until != 0 && wire::monotonicNanoseconds() < until) ||
           thread.completed.load(thread.context(), changes) == Completed::kIdle;
  };
  CUresult status = remote::cuStreamQuery(stream);
  while (status == CUDA_ERROR_NOT_READY && isDone()) status = remote::cuStreamQuery(stream);
  return status;
}

}  // namespace

void noteWaited(CUstream stream) {
  Thread& thread = Thread::current();
  thread.session->lastWait.note(number(stream), thread.changes);
  thread.completed.noteWaited(thread.context(), number(stream), thread.changes,
                              wire::monotonicNanoseconds());
}

/// Another process may record an event that it shares, without any call of this one.
CUresult cuEventQuery(CUevent hEvent) {
  return query(hEvent, !sharesEvents(), remote::cuEventQuery);
}

/// After a copy from the GPU that the thread waited for, the stream has nothing to wait for.
CUresult cuStreamSynchronize(CUstream hStream) {
  Session* const session = Session::current();
  if (session == nullptr || insideCallback()) [[unlikely]]
    return Session::ready();
  const Thread& thread = Thread::current();
  const std::uint64_t until =
      thread.completed.endedUntil(thread.context(), number(hStream), session->order.changes());
  if (until != 0 && session->mayRepeat() && wire::monotonicNanoseconds() < until)
    return CUDA_SUCCESS;
  const std::uint64_t stream = number(hStream);
  const bool shares = session->streamThreads.mayShareWait(stream, thread.number);
  Call call;
  if (!call.begin(CallNumber::cuStreamSynchronize, sizeof stream, shares ? kShared : kOrdered))
    return call.status();
  call.encoder().put(stream);
  wire::Decoder reply;
  const CUresult status = call.wait(reply);
  if (status == CUDA_SUCCESS) noteWaited(hStream);
  return status;
}

CUresult cuStreamQuery(CUstream hStream) { return query(hStream, true, askStream); }

}  // namespace interposer
