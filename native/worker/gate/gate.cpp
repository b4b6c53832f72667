#include "native/worker/gate/gate.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "wire/wait.h"

namespace worker {

namespace {

using arbiter::Grant;
using arbiter::grantOf;
using wire::monotonicNanoseconds;

/// Maximum sleep at a closed gate, in case a wake-up is lost with its arbiter.
constexpr std::uint64_t kLongestSleep = 100'000'000;
/// Maximum pieces of work of unknown duration on the device.
constexpr std::size_t kMostUnknown = 4;
/// A piece of work that is longer than the queue limit enters when so much work is left, or a
/// quarter of that piece: estimates are off by that much.
constexpr std::uint64_t kNext = 300'000;
/// Threads at the gate reread the expected time of the change so often: it moves when tenants come
/// and go.
constexpr std::uint64_t kGlanceEvery = 1'000'000;
/// A thread at a closed gate spins for so long first. A session with priority, or on an idle GPU,
/// enters within that time.
constexpr std::uint64_t kAtFirst = 600'000;

/// So many pieces of work for each GPU are let in after the gate has closed, so that it catches up
/// with another.
constexpr std::size_t kMostLate = Backlogs::kFew;
/// Interval in microseconds at which a thread asks for work that it must wait for.
constexpr useconds_t kAskEvery = 100;
const CUstream kNoStream = reinterpret_cast<CUstream>(~std::uintptr_t{0});

}  // namespace

Gate::Gate(const Driver& driver, std::atomic<std::uint64_t>& waited, const Captures& captures)
    : driver_(driver),
      captures_(captures),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waited_(waited),
      backlogs_(driver),
      random_(static_cast<std::minstd_rand::result_type>(monotonicNanoseconds())),
      sampling_(monotonicNanoseconds()) {}

Gate::~Gate() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake();
  if (thread_.joinable()) thread_.join();
  close(wake_);
}

void Gate::open(const std::string& socketPath) {
  path_ = socketPath;
  link_.await();
  thread_ = std::thread([this] { run(); });
}

Gate::Pass::Pass(Gate& gate) : gate_(gate), mailbox_(gate.link_.mailbox()) {
  const std::lock_guard lock(gate_.mutex_);
  gate_.passes_.push_back(this);
}

Gate::Pass::~Pass() {
  leave();
  const std::lock_guard lock(gate_.mutex_);
  std::erase(gate_.passes_, this);
}

// On the threads that submit.

/// The current context. Without one, the driver submits into the context of the stream.
CUcontext Gate::contextOf(CUstream stream) const {
  CUcontext context = nullptr;
  driver_.cuCtxGetCurrent(&context);
  if (context == nullptr) driver_.cuStreamGetCtx(stream, &context);
  return context;
}

/// Asking the driver which context is current costs more than the rest of an admission, so the
/// answer is kept.
Backlog& Gate::backlogOf(Pass& pass) {
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (pass.backlog_ == nullptr || pass.backlogGeneration_ != generation) {
    pass.backlog_ = &backlogs_.of(contextOf(pass.stream_));
    pass.backlogGeneration_ = generation;
  }
  return *pass.backlog_;
}

void Gate::note(Pass& pass, CUstream stream) {
  const CUcontext context = contextOf(stream);
  const std::lock_guard lock(mutex_);
  backlogs_.of(context).note(pass.at(stream));
  if (const std::uint32_t generation = generation_.load(); pass.generation_ != generation) {
    pass.noted_.fill(kNoStream);
    pass.generation_ = generation;
  }
  pass.placeOf(stream) = stream;
}

void Gate::await(Pass& pass, CUstream stream, std::uint64_t shape) {
  pass.stream_ = stream;
  pass.shape_ = shape;
  // A call may submit several pieces of work.
  std::unique_lock turn =
      pass.turn_.owns_lock() ? std::move(pass.turn_) : std::unique_lock(oneByOne_);
  for (;;) {
    const std::uint32_t word = link_.mailbox().grant.load(std::memory_order_acquire);
    const Grant grant = grantOf(word);
    const bool inside = grant == Grant::closed ? admitLate(pass, word) || awaitGrant(pass, word)
                        : grant == Grant::open ? pass.enterOpen(stream)
                                               : admit(pass);
    if (!inside) continue;
    if (pass.measured_) pass.turn_ = std::move(turn);
    return;
  }
}

void Gate::countWaiting(int more) {
  const std::lock_guard lock(mutex_);
  waiting_ += static_cast<std::uint32_t>(more);
  link_.mailbox().wants.store(waiting_, std::memory_order_seq_cst);
}

/// True when the pass came in late, false when something else holds than the word says.
bool Gate::awaitGrant(Pass& pass, std::uint32_t word) {
  const Clock begin = monotonicNanoseconds();
  countWaiting(1);
  if (link_.isRuled())
    link_.poke();
  else
    wake();  // the gate's thread rules, or hears of this when the arbiter comes
  if (wire::hasProcessorsForSpinning()) spinWhile(word, kAtFirst);
  bool inside = false;
  while (!inside && link_.mailbox().grant.load(std::memory_order_acquire) == word) {
    inside = backlogs_.gpus() > 1 && admitLate(pass, word);
    if (!inside) awaitChange(word);
  }
  countWaiting(-1);
  waited_.fetch_add(monotonicNanoseconds() - begin, std::memory_order_relaxed);
  return inside;
}

/// Sleeps, and spins around the expected time of the change if there are processors for that.
void Gate::awaitChange(std::uint32_t word) {
  arbiter::Mailbox& mailbox = link_.mailbox();
  // Another page may replace this one, and a thread that sleeps on a word of this page would not be
  // woken.
  const std::uint32_t changes = link_.changes().load(std::memory_order_acquire);
  if (mailbox.grant.load(std::memory_order_acquire) != word) return;
  if (!link_.isRuled())
    return wire::futexWait(link_.changes(), changes,
                           backlogs_.gpus() > 1 ? kGlanceEvery : kLongestSleep);
  if (!wire::hasProcessorsForSpinning())
    return wire::futexWait(mailbox.grant, word,
                           backlogs_.gpus() > 1 ? kGlanceEvery : kLongestSleep);
  const Clock now = monotonicNanoseconds();
  const Clock expected = mailbox.expected.load(std::memory_order_relaxed);
  if (expected == 0 || now >= expected + kPatience)
    wire::futexWait(mailbox.grant, word, kGlanceEvery);
  else if (now + arbiter::kWakeUpNanoseconds < expected)
    wire::futexWait(mailbox.grant, word,
                    std::min(expected - arbiter::kWakeUpNanoseconds - now, kGlanceEvery));
  else
    spinWhile(word, kGlanceEvery / 10);
}

void Gate::spinWhile(std::uint32_t word, Clock nanoseconds) const {
  const auto changed = [&] {
    return link_.mailbox().grant.load(std::memory_order_acquire) != word;
  };
  wire::spinUntil(nanoseconds, changed, [] { return false; });
}

/// Queued work may not exceed the limit. A single piece that exceeds it is followed closely by the
/// next.
bool Gate::hasRoom(const Backlog& backlog, std::uint64_t shape, Clock since, Clock now) {
  const Clock remaining = backlog.remaining(now);
  const Clock guess = backlogs_.durationOf(shape);
  if (!backlog.empty() && now - since >= Backlogs::kStuck && backlog.lastDone() < since)
    return true;
  if (isReserved(now, remaining, guess)) return false;
  const Clock limit = link_.mailbox().queueNanoseconds.load(std::memory_order_relaxed);
  return backlog.unknown() < kMostUnknown &&
         (remaining + guess <= limit || remaining <= std::min(limit, std::max(kNext, guess / 4)));
}

/// A tenant with priority submits regularly, and would find this work on the device.
bool Gate::isReserved(Clock now, Clock remaining, Clock guess) const {
  const arbiter::Mailbox& mailbox = link_.mailbox();
  return now < mailbox.reservedUntil.load(std::memory_order_acquire) &&
         guess <= mailbox.longestHeld.load(std::memory_order_relaxed) &&
         now + remaining + guess > mailbox.reservedFrom.load(std::memory_order_relaxed);
}

bool Gate::catchesUp(const Backlog& backlog, std::uint64_t shape, Clock now) {
  const Clock limit = 2 * Clock{link_.mailbox().queueNanoseconds.load(std::memory_order_relaxed)};
  return backlogs_.catchesUp(backlog, shape, limit, now);
}

/// Waking the thread costs some microseconds.
void Gate::wakeIfAsleepFor(Clock nanoseconds, Clock now) {
  if (asleepUntil_ <= now + nanoseconds) return;
  asleepUntil_ = 0;
  wake();
}

/// Called for the first work since the gate's thread looked.
void Gate::noteWork() {
  if (seen_.exchange(Seen::work) == Seen::nothingAndSleeps) wake();
}

/// The gate's thread notifies earlier if work has finished.
Gate::Clock Gate::untilRoom(Clock now) const {
  const Clock reserved = link_.mailbox().reservedUntil.load(std::memory_order_relaxed);
  return now < reserved ? std::min(kGlanceEvery, reserved - now) : kGlanceEvery;
}

/// The gate's thread asks nothing while `looking_` is held here, nor afterwards.
void Gate::setStill(bool still) {
  const std::scoped_lock locks(looking_, mutex_);
  still_ = still;
  if (still)
    for (auto& [context, backlog] : backlogs_) backlog->stopMeasuring(), backlog->forgetRetired();
}

/// In a window: true if the pass is inside, false if the window has ended.
bool Gate::admit(Pass& pass) {
  const Clock begin = monotonicNanoseconds();
  std::unique_lock lock(mutex_);
  Clock now = begin;
  const auto mayEnter = [&] {
    const Backlog& backlog = backlogOf(pass);
    return hasRoom(backlog, pass.shape_, begin, now) || catchesUp(backlog, pass.shape_, now);
  };
  // Under the lock: the gate's thread may already have reported `drained`.
  for (; grantOf(link_.mailbox().grant.load(std::memory_order_acquire)) == Grant::window;
       now = monotonicNanoseconds()) {
    if (mayEnter()) return enter(pass, begin, now), true;
    if (!backlogs_.empty()) wakeIfAsleepFor(kLookEvery, now);
    room_.wait_for(lock, std::chrono::nanoseconds(untilRoom(now)));
  }
  return false;
}

/// The gate is closed. True if the pass is inside anyway, because running work may wait for the
/// work that it submits.
bool Gate::admitLate(Pass& pass, std::uint32_t word) {
  const std::lock_guard lock(mutex_);
  const Backlog& backlog = backlogOf(pass);
  const Clock now = monotonicNanoseconds();
  if (late_ >= kMostLate * backlogs_.gpus() || answered_ == word ||
      link_.mailbox().grant.load(std::memory_order_acquire) != word)
    return false;
  if (!catchesUp(backlog, pass.shape_, now)) {
    if (word_ != word || !backlogs_.isAwaited(backlog, closedSince_, now)) return false;
    backlogs_.levelFor(backlog);
  }
  ++late_;
  enter(pass, now, now);
  return true;
}

/// The gate's thread looks for those inside with the same lock.
void Gate::enter(Pass& pass, Clock came, Clock now) {
  pass.inside_.store(Pass::kCounted, std::memory_order_relaxed);
  pass.entered_ = pass.measured_ = true;
  pass.perThread_ = pass.stream_ == CU_STREAM_PER_THREAD;
  pass.begin_ = now;
  freeMarkers_.store(kFreeMarkers, std::memory_order_relaxed);
  link_.mailbox().submittedAt.store(now, std::memory_order_relaxed);
  if (pauses_.idleSince() != 0) {
    pauses_.workCame(came);
    link_.mailbox().idleSince.store(0, std::memory_order_release);
  }
  wakeIfAsleepFor(arbiter::kGapNanoseconds, now);
}

void Gate::submitted(Pass& pass) {
  pass.measured_ = false;
  const std::unique_lock turn = std::move(pass.turn_);
  std::atomic<std::uint32_t>& standby = link_.mailbox().standby;
  if (standby.load(std::memory_order_relaxed) != 0 && standby.exchange(0) != 0) link_.poke();
  const std::lock_guard lock(mutex_);
  backlogOf(pass).submitted(pass.at(pass.stream_), pass.shape_, pass.begin_);
}

void Gate::submittedBesideCapture(Pass& pass) {
  const std::lock_guard lock(mutex_);
  backlogOf(pass).submittedBesideCapture(pass.at(CU_STREAM_PER_THREAD));
}

/// The driver destroys a stream at once, and its work goes on. Default streams end with their
/// context only, whatever a client asks for.
void Gate::forget(CUstream stream) {
  if (stream <= CU_STREAM_PER_THREAD) return;
  while (!retire(stream)) usleep(kAskEvery);
}

/// Without an arbiter's thread nobody asks for the work.
bool Gate::retire(CUstream stream) {
  const std::scoped_lock locks(looking_, mutex_);
  ++generation_;
  if (!path_.empty()) return backlogs_.retire(stream, captures_.any());
  backlogs_.forget(stream);
  return true;
}

bool Gate::isBusy(CUcontext context) {
  const std::scoped_lock locks(looking_, mutex_);
  return backlogs_.isBusy(context, captures_.any());
}

/// The driver's call waits for the work too, but the gate could not ask for it meanwhile, and would
/// answer the arbiter that there is none.
void Gate::forget(CUcontext context) {
  while (!path_.empty() && isBusy(context)) usleep(kAskEvery);
  const std::scoped_lock locks(looking_, mutex_);
  backlogs_.forget(context);
  if (!backlogs_.hasContexts()) timed_.clear();
  if (current_ == context) current_ = nullptr;
  ++generation_;
}

/// Without an arbiter's thread nobody asks.
CUresult Gate::aboutToCapture(CUstream stream) {
  if (path_.empty()) return CUDA_SUCCESS;
  const std::scoped_lock locks(looking_, mutex_);
  return backlogs_.aboutToCapture(stream);
}

void Gate::forget(CUevent event) {
  const std::lock_guard lock(mutex_);
  timed_.erase(event);
}

void Gate::created(CUevent event, unsigned flags) {
  const std::lock_guard lock(mutex_);
  if ((flags & CU_EVENT_DISABLE_TIMING) == 0)
    timed_.insert(event);
  else
    timed_.erase(event);  // the address may be that of a timed event that ended with its context
}

void Gate::recorded(CUevent event) {
  arbiter::Mailbox& mailbox = link_.mailbox();
  if (grantOf(mailbox.grant.load(std::memory_order_relaxed)) == Grant::open) return;
  const std::lock_guard lock(mutex_);
  if (timed_.contains(event))
    mailbox.timedRecord.store(monotonicNanoseconds(), std::memory_order_relaxed);
}

}  // namespace worker
