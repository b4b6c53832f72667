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

/// How long after a wait the driver may say that the stream is not done (last_wait.h): as a rule,
constexpr std::uint64_t kLateNanoseconds = 5'000;
/// and if the GPU turns to the work of others, which it comes back from after a time slice.
constexpr std::uint64_t kLatestNanoseconds = 20'000'000;

/// Asks the driver again as long as it may be late: where no other call is likely to have given the
/// stream work since the wait, up to the longer of these times.
CUresult askStream(CUstream stream) {
  CUresult status = remote::cuStreamQuery(stream);
  if (status != CUDA_ERROR_NOT_READY) return status;
  const Session& session = *Session::current();
  const Thread& thread = Thread::current();
  const std::uint64_t waited = session.lastWait.at();
  const std::uint64_t ownUntil =
      thread.completed.waitedUntil(thread.context(), number(stream), thread.changes);
  const auto mayBeLate = [&] {
    const std::uint64_t now = wire::monotonicNanoseconds();
    const std::uint64_t changes = session.order.changes();
    if (now < waited + kLateNanoseconds) return true;
    if (now < ownUntil && (thread.changes == changes ||
                           session.streamThreads.mayShareWait(number(stream), thread.number)))
      return true;
    return now < waited + kLatestNanoseconds && !isDefault(stream) &&
           session.lastWait.isOf(number(stream), changes);
  };
  while (status == CUDA_ERROR_NOT_READY && mayBeLate()) status = remote::cuStreamQuery(stream);
  return status;
}

}  // namespace

void noteWaited(CUstream stream, std::uint64_t now) {
  Thread& thread = Thread::current();
  thread.session->lastWait.note(number(stream), thread.changes, now);
  thread.completed.noteWaited(thread.context(), number(stream), thread.changes,
                              now + kLatestNanoseconds);
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
  if (status == CUDA_SUCCESS) noteWaited(hStream, wire::monotonicNanoseconds());
  return status;
}

CUresult cuStreamQuery(CUstream hStream) { return query(hStream, true, askStream); }

}  // namespace interposer
