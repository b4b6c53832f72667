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

/// Threads wait for a word that the GPU writes. The driver learns up to half a microsecond later
/// that the stream has ended (H200, driver 580), so right behind a wait it may still say no.
CUresult askStream(CUstream stream) {
  constexpr std::uint64_t kLateNanoseconds = 5'000;
  CUresult status = remote::cuStreamQuery(stream);
  if (status != CUDA_ERROR_NOT_READY) return status;
  const std::uint64_t until = Session::current()->waitedAt() + kLateNanoseconds;
  while (status == CUDA_ERROR_NOT_READY && wire::monotonicNanoseconds() < until)
    status = remote::cuStreamQuery(stream);
  return status;
}

}  // namespace

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
  return call.wait(reply);
}

CUresult cuStreamQuery(CUstream hStream) { return query(hStream, true, askStream); }

}  // namespace interposer
