#include "native/worker/thread.h"

#include "wire/wait.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// A program that thinks for some 60 us between two rounds of work (a decoder does) loses 5 us a round when its worker sleeps through each
/// thought: 2 % (H200). Being woken from a longer sleep takes 0.17 ms: too long where lower tenants must yield at once.
std::uint64_t spinFor(const Gate& gate) {
  if (!wire::hasProcessorsForSpinning()) return wire::kSpinNanoseconds;
  return gate.outranks() ? arbiter::kPromptNanoseconds : 100'000;
}

}  // namespace

void Thread::serve() {
  wire::FrameHeader header{};
  wire::Decoder payload;
  while (!ended_ && channel_->next(header, payload, spinFor(session.gate))) {
    if (!session.turn.await(header.ticket)) return;
    ticket_ = header.ticket;
    ++frames_;
    const bool timed = (header.flags & wire::kFrameWantsReply) != 0 && ++roundTrips_ % Figures::kRoundTripsPerSample == 0;
    const std::uint64_t begin = timed ? wire::monotonicNanoseconds() : 0;
    wire::Encoder reply = channel_->replyEncoder();
    const CUresult status = dispatch(*this, header, payload, reply);
    finish(header, reply, status);
    if (timed) session.figures.sampleRoundTrip(wire::monotonicNanoseconds() - begin);
  }
  if (channel_->end() == wire::ChannelEnd::nonsense) session.fail("the client wrote a frame that cannot be");
}

void Thread::finish(const wire::FrameHeader& header, const wire::Encoder& reply, CUresult status) {
  passTicket();
  if (status != CUDA_SUCCESS) session.noteFault(status);
  if ((header.flags & wire::kFrameWantsReply) != 0) {
    session.output.send(session);
    channel_->reply(reply, status, session.output.position());
  } else if (status != CUDA_SUCCESS) {
    channel_->deferError(status);
  }
}

void Thread::passTicket() {
  pass_.leave();
  session.turn.pass(ticket_);
  ticket_ = 0;
}

/// The ticket is passed on like that of any frame.
CUresult passTicket(Thread& thread, wire::Decoder& in, wire::Encoder&) { return in.finished() ? CUDA_SUCCESS : thread.refuseFrame(); }

bool Thread::localMemoryFits(std::uint64_t handle, CUfunction function) {
  CUfunction& launched = launched_[reinterpret_cast<std::uintptr_t>(function) / 64 % launched_.size()];
  if (launched == function && codeChanges_ == session.codeChanges()) [[likely]]
    return true;
  const unsigned changes = session.codeChanges();
  if (changes != codeChanges_) forgetLaunched();
  codeChanges_ = changes;
  const bool isKernel = wire::handleKind(handle) == wire::HandleKind::kernel;
  if (!(isKernel ? session.localMemory.reserveFor(reinterpret_cast<CUkernel>(function)) : session.localMemory.reserveFor(function)))
    return false;
  launched = function;
  return true;
}

std::uint64_t Thread::currentContext() const {
  CUcontext context = nullptr;
  driver.cuCtxGetCurrent(&context);
  return session.handles.handleOf(wire::HandleKind::context, context);
}

CUresult Thread::refuseFrame() {
  session.fail("the client sent a frame that does not parse");
  ended_ = true;
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace worker
