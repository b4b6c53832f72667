#include "native/worker/session/thread.h"

#include <sys/prctl.h>

#include <string>
#include <thread>

#include "call_facts.h"
#include "call_numbers.h"
#include "wire/wait.h"
#include "worker_bodies.h"

namespace worker {

namespace {

/// Time in ns to spin for the next frame. A program that pauses for 60 us between rounds, as a
/// decoder does, loses 5 us (2 %) per round if its worker sleeps (H200). Waking from a longer sleep
/// takes 0.17 ms, which is too long if lower tenants must yield at once.
std::uint64_t spinFor(const Gate& gate) {
  if (!wire::hasProcessorsForSpinning()) return wire::kSpinNanoseconds;
  return gate.outranks() ? arbiter::kPromptNanoseconds : 100'000;
}

/// Whether the call may make something that the program never gets if an earlier call's error is
/// returned. Such a call does not run then.
bool makes(const wire::FrameHeader& header) {
  return header.call <= kCallCount && kCallFacts[header.call].makes;
}

/// Whether the call may run beside others of these kinds: a launch, the wait for a stream, or the
/// end of an abandoned one.
bool mayShare(const wire::FrameHeader& header) {
  using enum CallNumber;
  const auto call = static_cast<CallNumber>(header.call);
  return call == cuLaunchKernel || call == cuLaunchKernelEx || call == cuStreamSynchronize ||
         call == passTicket;
}

/// The least stop at which the call waits.
Readers::Stop leastStop(const wire::FrameHeader& header) {
  const bool bringsBack = static_cast<CallNumber>(header.call) == CallNumber::moveManagedToHost;
  return bringsBack ? Readers::Stop::all : Readers::Stop::calls;
}

}  // namespace

void Thread::serve() {
  wire::FrameHeader& header = frame_;
  wire::Decoder payload;
  while (!ended_ && channel_->next(header, payload, spinFor(session.gate))) {
    const bool wantsReply = (header.flags & wire::kFrameWantsReply) != 0;
    reader_.answers(wantsReply);
    if (!awaitTurn(header)) return;
    reader_.enter(leastStop(header));
    ticket_ = header.ticket;
    ++frames_;
    const bool timed = wantsReply && ++roundTrips_ % Figures::kRoundTripsPerSample == 0;
    const std::uint64_t begin = timed ? wire::monotonicNanoseconds() : 0;
    wire::Encoder reply = channel_->replyEncoder();
    const CUresult earlier = wantsReply ? earlierError() : CUDA_SUCCESS;
    failedBefore_ = earlier != CUDA_SUCCESS;
    CUresult own = CUDA_SUCCESS;
    if (earlier == CUDA_SUCCESS || !makes(header)) own = execute(header, payload, reply);
    session.noteFault(own);
    finish(header, reply, own == CUDA_SUCCESS ? earlier : own);
    reader_.answers(false);
    if (timed) session.figures.sampleRoundTrip(wire::monotonicNanoseconds() - begin);
  }
  endRow();
  if (channel_->end() == wire::ChannelEnd::nonsense)
    session.fail("the client wrote a frame that is not valid");
}

/// The error of a call that did not wait, which the reply brings. The client can write it, so it is
/// good for nothing else: serve() noted the call's fault when the call ran.
CUresult Thread::earlierError() { return static_cast<CUresult>(channel_->takeDeferredError()); }

CUresult Thread::execute(const wire::FrameHeader& header, wire::Decoder& payload,
                         wire::Encoder& reply) {
  const CUresult status = dispatch(*this, header, payload, reply);
  const RelaxedCapture relaxed(driver, session.captures);
  const bool fits = codeFits();
  beforeCode_.reset();
  image_ = 0;
  return !fits && status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status;
}

/// The order separates calls that use the same object, so no client call may skip it.
bool Thread::awaitTurn(const wire::FrameHeader& header) {
  const bool known = header.call <= kCallCount;  // dispatch() refuses others
  if (known && kCallFacts[header.call].ordered != (header.ticket != 0)) {
    const std::string name = callName(header.call);
    session.fail(
        header.ticket == 0
            ? "the client sent " + name + " without a ticket, which its place in the order requires"
            : "the client sent " + name + " with a ticket, though it has no place in the order");
    return false;
  }
  shares_ = (header.flags & wire::kFrameShares) != 0;
  if (shares_ && !mayShare(header)) {
    session.fail("the client shared the ticket of a call that runs alone");
    return false;
  }
  if (shares_ && continuesRow(header) && !session.turn.stopped()) return ++row_, true;
  endRow();
  if (session.turn.await(header.ticket, shares_)) {
    if (shares_) row_ = 1, rowTurn_ = header.ticket / wire::kTicket;
    return true;
  }
  if (!session.turn.stopped())
    session.fail("the client used ticket " + std::to_string(header.ticket) +
                 " twice, or out of order");
  return false;
}

void Thread::finish(const wire::FrameHeader& header, const wire::Encoder& reply, CUresult status) {
  use_.release();
  pass_.endWait();
  leaveTurn(status == CUDA_SUCCESS);
  reader_.leave();
  if ((header.flags & wire::kFrameWantsReply) != 0) {
    session.output.send(session.connection);
    channel_->reply(reply, status, session.output.position());
  } else if (status != CUDA_SUCCESS) {
    channel_->deferError(status);
  }
}

void Thread::noteCopy(CUstream stream) {
  noteLaunch(stream);
  copyFrame_ = frames_;
  if (std::exchange(awaitsCopies_, false) && follow(stream)) wordTicket_ = ticket_;
}

/// If no ticket lies between the copy and this frame, no thread has given the stream more work.
bool Thread::followsWork(CUstream stream) {
  if (launchFrame_ + 1 != frames_ || launchedInto_ != stream) return false;
  awaitsCopies_ = copyFrame_ + 1 == frames_;
  if (awaitsCopies_ && wordTicket_ + wire::kTicket == ticket_) return mayFollow();
  return followToClient(stream) || follow(stream);
}

/// The client goes on before this thread does, so nothing may be left to do that it could see.
bool Thread::followToClient(CUstream stream) {
  return !failedBefore_ && mayFollow() && session.memory.pools().reserved() == 0 &&
         registeredReply_.prepare(session.contexts.endings(), false) &&
         completion.follow(stream, channel_->endOfWait());
}

void Thread::passTicket(const void* used) {
  pass_.beginWait();
  CUcontext context = nullptr;
  driver.cuCtxGetCurrent(&context);
  use_.hold(used, context);
  leaveTurn();
  endRow();
}

/// Whether the shared ticket has the turn with those of the row: no ticket that must be alone lies
/// between them.
bool Thread::continuesRow(const wire::FrameHeader& header) const {
  return row_ > 0 && header.ticket / wire::kTicket == rowTurn_;
}

/// Whether the client has published a frame that will continue the row.
bool Thread::rowGoesOn() const {
  const std::optional<wire::FrameHeader> next = channel_->glance();
  return next && (next->flags & wire::kFrameShares) != 0 && continuesRow(*next);
}

void Thread::endRow() {
  if (row_ > 0) session.turn.passShared(std::exchange(row_, 0));
  if (launches_ > 0) count(session.figures.launches, std::exchange(launches_, 0));
}

/// A stream that has just joined a capture must get no marker of the gate.
void Thread::leaveTurn(bool submitted) {
  const RelaxedCapture relaxed(driver, session.captures);
  if (traced_) [[unlikely]]
    endTraced(submitted);
  if (pass_.measures() && isCaptured(pass_.stream())) pass_.leaveUnmeasured();
  pass_.leave();
  const std::uint64_t ticket = std::exchange(ticket_, 0);
  if (ticket == 0 || (shares_ && rowGoesOn())) return;
  if (!shares_) session.turn.pass(ticket);
  endRow();
}

/// Captured work does not run, so nobody waits for it. Markers are not traced.
void Thread::awaitWindowOrCapture(Window window, CUstream stream, std::uint64_t bytes,
                                  std::initializer_list<std::uint64_t> shape) {
  if (isCaptured(stream)) return;
  passGate(window, stream, bytes, shape);
  if (!session.captures.isTraced() || window == Window::marker) return;
  const RelaxedCapture relaxed(driver, session.captures);
  const auto number = reinterpret_cast<std::uint64_t>(stream);
  wire::TimelineItem item{};
  item.call = frame_.call;
  item.stream = number <= 2 ? number : session.handles.handleOf(wire::HandleKind::stream, stream);
  item.code = shape.size() > 0 ? *shape.begin() : 0;
  item.bytes = bytes;
  work_ = session.timeline.begin(stream, item);
  workStream_ = stream;
  traced_ = true;
}

void Thread::endTraced(bool submitted) {
  traced_ = false;
  session.timeline.end(workStream_, work_, submitted);
}

/// For a client that traces. Waiting, it holds up no other call, because it has no ticket.
CUresult readTimeline(Thread& thread, wire::Decoder& in, wire::Encoder& out) {
  const bool wait = in.get<std::uint32_t>() != 0;
  if (!in.finished()) return thread.refuseFrame();
  const RelaxedCapture relaxed(thread.driver);
  std::vector<wire::TimelineItem> items;
  out.put(thread.session.timeline.take(wait, wire::kMostTimelineItems, items));
  out.putBytes(items.data(), items.size() * sizeof items.front());
  return CUDA_SUCCESS;
}

/// finish() passes the ticket on, as for any frame.
CUresult passTicket(Thread& thread, wire::Decoder& in, wire::Encoder&) {
  return in.finished() ? CUDA_SUCCESS : thread.refuseFrame();
}

void Thread::loadsCode() const {
  if (!beforeCode_) beforeCode_ = session.held.read();
}

void Thread::usesCodeAnew(std::uint64_t handle) const {
  const std::uint64_t image = session.handles.rootOf(handle);
  used_[handle / 2 % used_.size()] = handle;
  if (image == 0 || !session.held.firstUse(image)) return;
  loadsCode();
  image_ = image;
}

bool Thread::codeFits() {
  if (!beforeCode_ || !session.held.grew(*beforeCode_) || session.held.settle()) return true;
  if (!shares_) unload(image_);  // another launch may use it
  if (shares_ || !session.held.settle())
    session.fail("the program's code takes more memory than its quota has, and cannot be unloaded");
  return false;
}

/// Unloads the image as the program would; its handles end.
void Thread::unload(std::uint64_t image) {
  if (void* library = session.handles.find(wire::HandleKind::library, image))
    driver.cuLibraryUnload(static_cast<CUlibrary>(library));
  if (void* module = session.handles.find(wire::HandleKind::module, image))
    driver.cuModuleUnload(static_cast<CUmodule>(module));
  session.handles.remove(image);
  session.codeEnded();
  session.images.forget(image);
}

bool Thread::localMemoryFits(std::uint64_t handle, CUfunction function, CUstream stream) {
  const auto bits = reinterpret_cast<std::uintptr_t>(function) / 64 +
                    reinterpret_cast<std::uintptr_t>(stream) / 64;
  auto& launched = launched_[bits % launched_.size()];
  if (launched == std::pair(function, stream) && codeChanges_ == session.codeChanges()) [[likely]]
    return true;
  const RelaxedCapture relaxed(driver, session.captures);
  const unsigned changes = session.codeChanges();
  if (changes != codeChanges_) forgetLaunched();
  codeChanges_ = changes;
  const bool isKernel = wire::handleKind(handle) == wire::HandleKind::kernel;
  LocalMemory& account = session.localMemory;
  if (!(isKernel ? account.reserveFor(reinterpret_cast<CUkernel>(function), stream)
                 : account.reserveFor(function, stream)))
    return false;
  launched = {function, stream};
  return true;
}

bool Thread::localMemoryFits(std::uint64_t handle, CUfunction function, CUcontext context) {
  const RelaxedCapture relaxed(driver, session.captures);
  LocalMemory& account = session.localMemory;
  return wire::handleKind(handle) == wire::HandleKind::kernel
             ? account.reserveFor(reinterpret_cast<CUkernel>(function), context)
             : account.reserveFor(function, context);
}

CUcontext Thread::owner() const {
  CUcontext context = nullptr;
  driver.cuCtxGetCurrent(&context);
  return session.ownerOf(context);
}

std::uint64_t Thread::ownerHandle() const {
  return session.handles.handleOf(wire::HandleKind::context, owner());
}

CUresult Thread::refuseFrame() {
  session.fail("the client sent a frame that does not parse");
  ended_ = true;
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

void serveChannel(Session& session, int channelFile, bool answersFaults) {
  auto channel = wire::WorkerChannel::attach(channelFile);
  if (channel == nullptr) return session.fail("the client opened a channel that is not valid");
  const bool counted = !answersFaults || session.managed.answersFaults.exchange(true);
  if (counted && !session.quota.chargeThread(session.limits.threads)) {
    session.report.event("overThreads", JsonObject().add("limit", session.limits.threads));
    return session.fail(
        "more than " + std::to_string(session.limits.threads) +
        " threads use CUDA, which the allocation does not allow; use fewer threads, or "
        "have the limit raised");
  }
  count(session.figures.threads);
  auto thread = std::make_unique<Thread>(session, std::move(channel));
  std::thread([&session, counted, owned = std::move(thread)]() mutable {
    prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; else a sleep at the gate lasts 50 us too long
    owned->serve();
    owned.reset();
    if (counted) session.quota.refundThread();
    discount(session.figures.threads);
  }).detach();
}

}  // namespace worker
