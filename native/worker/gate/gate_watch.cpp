// The gate's own thread: follows the arbiter's grants, polls for finished work and reports it.
#include <poll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "native/worker/gate/gate.h"
#include "wire/wait.h"

namespace worker {

namespace {

using arbiter::Grant;
using arbiter::grantOf;
using wire::monotonicNanoseconds;

constexpr std::uint64_t kForEver = ~std::uint64_t{0};
/// Interval of attempts to connect to the arbiter; shorter before the first grant, because nothing
/// passes until then.
constexpr std::uint64_t kReconnect = 200'000'000, kConnect = 5'000'000;
/// Remaining work at which the GPU is handed over: the messages take part of that time, and the
/// estimate is off by the rest.
constexpr std::uint64_t kHandover = 100'000;
/// A longer kernel prevents an early handover: the hardware preempts it for the next tenant's first
/// kernel, and the two extra switches cost 140 us each. Shorter kernels run to their end (H200: 0.2
/// ms does, 2 ms does not).
constexpr std::uint64_t kInterrupted = 500'000;
/// While a window is about to end, work is looked for at this interval only. A look takes the locks
/// of this gate and of the driver, for which each submission would wait.
constexpr std::uint64_t kLookAboutToClose = 10'000;

}  // namespace

void Gate::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_, &one, sizeof one);
}

void Gate::run() {
  prctl(PR_SET_NAME, "gate");
  prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds
  // The queries of this thread must not invalidate a capture of the program.
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (driver_.cuThreadExchangeStreamCaptureMode != nullptr)
    driver_.cuThreadExchangeStreamCaptureMode(&mode);
  for (;;) {
    const bool connected = link_.connected() || link_.connect(path_);
    Clock rest = connected || !link_.isOpenWithoutArbiter() ? watch() : kForEver;
    if (!link_.isRuled()) rest = std::min(rest, limitItself());
    if (!connected) rest = std::min(rest, link_.isAwaiting() ? kConnect : kReconnect);
    if (rest == 0 && last_ == Grant::window) spinInWindow();
    sleep(rest);
    const std::lock_guard lock(mutex_);
    if (ending_) return;
  }
}

/// Sleeps until wake(), a message of the arbiter, or the timeout.
void Gate::sleep(Clock nanoseconds) {
  pollfd waits[] = {{wake_, POLLIN, 0}, {link_.file(), POLLIN, 0}};
  const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000),
                         static_cast<long>(nanoseconds % 1'000'000'000)};
  ppoll(waits, link_.connected() ? 2 : 1, nanoseconds == kForEver ? nullptr : &timeout, nullptr);
  std::uint64_t count = 0;
  if (waits[0].revents != 0) [[maybe_unused]]
    const auto bytes = read(wake_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  asleepUntil_ = 0;
  if (!link_.connected() || waits[1].revents == 0) return;
  if (!link_.receive()) become(link_.mailbox().grant.load());
  link_.mailbox().wants.store(waiting_,
                              std::memory_order_seq_cst);  // the mailbox may be a new one
}

/// Without an arbiter: limits the session to its share. Returns the time until the next decision.
Gate::Clock Gate::limitItself() {
  if (link_.isAwaiting() || link_.isOpenWithoutArbiter()) return kForEver;
  const std::lock_guard lock(mutex_);
  const std::uint32_t word = link_.mailbox().grant.load();
  const Clock now = monotonicNanoseconds();
  const Clock since = pauses_.idleSince();
  const bool idle = since != 0 && now - since >= arbiter::kGapNanoseconds;
  const Grant grant = limit_.decide(
      {.share = link_.shareWithoutArbiter(),
       .grant = grantOf(word),
       .waiting = waiting_ > 0,
       .running = word_ != word || (last_ == Grant::window ? !idle : answered_ != word)},
      now);
  if (grant == grantOf(word)) return limit_.rest();
  link_.rule(grant);
  return 0;
}

/// Follows the current grant. Returns the time until there is something to do.
Gate::Clock Gate::watch() {
  const std::lock_guard looking(looking_);
  std::unique_lock lock(mutex_);
  const std::uint32_t word = link_.mailbox().grant.load(std::memory_order_acquire);
  become(word);
  // A thread that is inside before or after the look may have submitted work that the look missed.
  const bool inside = someoneInside();
  const bool uncounted = last_ != Grant::open && !still_ && someoneUncounted();
  if (last_ != Grant::open && !still_) look(lock);
  if (uncounted)
    for (auto& [context, backlog] : backlogs_) backlog->startMeasuring();
  if (backlogs_.empty()) backlogs_.levelAll();
  const Clock now = monotonicNanoseconds();
  const Clock rest = last_ == Grant::open     ? watchOpen(lock)
                     : last_ == Grant::window ? watchWindow(now)
                                              : watchClosed(word, now, inside || someoneInside());
  asleepUntil_ = rest == kForEver ? kForEver : now + rest;
  if (rest != kForEver) return rest;
  // No event wakes this thread when the gate opens; the first pass through it does.
  if (last_ != Grant::open) seen_ = Seen::nothingAndSleeps;
  return link_.mailbox().grant.load() == word ? rest : 0;
}

/// Behind an open gate work is sampled, not measured.
Gate::Clock Gate::watchOpen(std::unique_lock<std::mutex>& lock) {
  const Clock now = monotonicNanoseconds();
  if (!sampling_.isDue(now)) return sampling_.rest(now);
  const bool pause = seen_.exchange(Seen::nothing) != Seen::work;
  std::size_t asked = 0;
  const bool running = !still_ && runs(lock, asked);
  if (running) link_.mailbox().used.fetch_add(sampling_.covers(now), std::memory_order_relaxed);
  Seen nothing = Seen::nothing;
  // A thread that is inside may be in a long call, and submit work at its end.
  if (pause && !running) barrier_.rare();
  const bool mayRest = pause && !running && !someoneInside();
  if (mayRest && seen_.compare_exchange_strong(nothing, Seen::nothingAndSleeps))
    return sampling_.stop(), kForEver;
  sampling_.taken(now, asked);
  return sampling_.rest(now);
}

void Gate::become(std::uint32_t word) {
  const std::uint32_t page = link_.changes().load();
  if (word == word_ && page == page_) return;  // a new page must be told everything again
  page_ = page;
  const Grant grant = grantOf(word);
  // The gate may have been open meanwhile, which does not wake this thread.
  const bool wasOpen =
      last_ == Grant::open || arbiter::numberOf(word) != arbiter::numberOf(word_) + 1;
  for (auto& [context, backlog] : backlogs_) {
    if (grant == Grant::open)
      backlog->stopMeasuring();
    else if (wasOpen && !still_)
      backlog->startMeasuring();
  }
  if (last_ == Grant::open) {
    pauses_.gateOpened();
    link_.mailbox().idleSince.store(0, std::memory_order_release);
  }
  if (wasOpen) pauses_.forgetPace();  // pauses behind the open gate were not observed
  if (grant == Grant::closed || last_ == Grant::open) barrier_.rare();
  word_ = word;
  last_ = grant;
  sampling_.stop();
  if (grant == Grant::closed) closedSince_ = monotonicNanoseconds();
  answered_ = 0;
  late_ = 0;
  room_.notify_all();
}

Gate::Clock Gate::watchWindow(Clock now) {
  room_.notify_all();
  tellPause(now);
  // Random, so that it does not follow a program's period: else a program that pauses at each
  // answer would never be seen idle.
  if (!backlogs_.empty() || someoneInside())
    return isAboutToClose(now) ? 0 : kLookEvery - random_() % (kLookEvery / 2);
  if (pauses_.idleSince() == 0) {
    pauses_.workEnded(now);
    link_.mailbox().idleSince.store(now, std::memory_order_release);
    toldIdle_ = false;
  }
  const Clock told = pauses_.idleSince() + arbiter::kGapNanoseconds;
  if (now < told) return isAboutToClose(now) ? 0 : told - now;
  if (!toldIdle_) link_.poke();
  toldIdle_ = true;
  return kForEver;
}

/// The last submission before a pause that may end the window and was not reported yet; 0: there
/// is none.
Gate::Clock Gate::freshPause(Clock now) const {
  const Clock expected = link_.mailbox().expected.load(std::memory_order_relaxed);
  const Clock last = link_.mailbox().submittedAt.load(std::memory_order_relaxed);
  const bool pauses = expected != 0 && now >= std::max(expected, last + arbiter::kPauseNanoseconds);
  return pauses && toldPause_ != last ? last : 0;
}

/// From the expected end of the window on, reports once that the program pauses.
void Gate::tellPause(Clock now) {
  const Clock last = freshPause(now);
  if (last == 0) return;
  toldPause_ = last;
  link_.poke();
}

void Gate::spinInWindow() const {
  const auto ready = [&] {
    return link_.mailbox().grant.load(std::memory_order_acquire) != word_ ||
           freshPause(monotonicNanoseconds()) != 0;
  };
  wire::spinUntil(kLookAboutToClose, ready, [] { return false; });
}

Gate::Clock Gate::watchClosed(std::uint32_t word, Clock now, bool inside) {
  const bool drained = backlogs_.empty();
  link_.mailbox().busyContexts.store(backlogs_.busyContexts(), std::memory_order_relaxed);
  if (const std::uint32_t seconds = link_.mailbox().overdue.exchange(0); seconds != 0 && overdue_)
    overdue_(seconds);
  if (answered_ == word) return drained ? kForEver : kLookEvery;
  if (inside) return kLookEvery / 5;
  if (!drained && ((waiting_ > 0 && backlogs_.isPartlyIdle()) ||
                   !backlogs_.nearlyEmpty(now, kHandover, kInterrupted)))
    return untilHandover(now);
  answered_ = word;
  link_.mailbox().pace.store(pauses_.paceUntil(closedSince_), std::memory_order_relaxed);
  pauses_.forgetPace();
  pauses_.workEnded(now);
  link_.mailbox().idleSince.store(now, std::memory_order_release);
  link_.mailbox().drained.store(word, std::memory_order_release);
  link_.poke();
  return drained ? kForEver : kLookEvery;
}

void Gate::look(std::unique_lock<std::mutex>& lock) {
  for (auto& [context, backlog] : backlogs_) {
    if (backlog->empty()) continue;
    auto questions = backlog->questions(monotonicNanoseconds(), last_ == Grant::closed);
    if (questions.empty()) continue;
    ask(*backlog, questions, lock);
    backlog->learn(questions, monotonicNanoseconds());
  }
}

bool Gate::runs(std::unique_lock<std::mutex>& lock, std::size_t& asked) {
  for (auto& [context, backlog] : backlogs_) {
    auto questions = backlog->streams();
    asked += questions.size();
    ask(*backlog, questions, lock);
    backlog->settle(questions);
    if (std::any_of(questions.begin(), questions.end(),
                    [](const auto& question) { return !question.done; }))
      return true;
  }
  return false;
}

/// Unlocked while it asks the driver: a submission does not wait for that.
void Gate::ask(Backlog& backlog, std::vector<Backlog::Question>& questions,
               std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  if (current_ != backlog.context()) driver_.cuCtxSetCurrent(current_ = backlog.context());
  backlog.ask(questions, captures_.any());
  lock.lock();
}

bool Gate::someoneInside() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const Pass* pass) {
    return pass->inside_.load(std::memory_order_acquire) != 0;
  });
}

bool Gate::someoneUncounted() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const Pass* pass) {
    return pass->inside_.load(std::memory_order_acquire) == Pass::kUncounted;
  });
}

bool Gate::isAboutToClose(Clock now) const {
  const Clock expected = link_.mailbox().expected.load(std::memory_order_relaxed);
  return wire::hasProcessorsForSpinning() && now < expected + arbiter::kGapNanoseconds &&
         now + arbiter::kWakeUpNanoseconds >= expected;
}

/// Spins when the handover is near or overdue, for a limited time. The handover may also come
/// earlier than estimated.
Gate::Clock Gate::untilHandover(Clock now) const {
  if (!wire::hasProcessorsForSpinning() || now >= closedSince_ + kPatience) return kLookEvery;
  constexpr Clock kAwake = kHandover + arbiter::kWakeUpNanoseconds;
  const Clock longest = backlogs_.longest(now);
  return longest > kAwake ? std::min(longest - kAwake, 4 * kLookEvery) : 0;
}

}  // namespace worker
