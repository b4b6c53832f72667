#include "native/worker/gate.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "wire/wait.h"

namespace worker {

namespace {

using arbiter::Grant;
using arbiter::grantOf;
using wire::monotonicNanoseconds;

constexpr std::uint64_t kForEver = ~std::uint64_t{0};
constexpr std::uint64_t kReconnect = 200'000'000;
/// How often the oldest work is asked for, at least. An answer costs 0.1 us.
constexpr std::uint64_t kLookEvery = 50'000;
/// No sleep before the gate is endless, should a wake-up get lost with its arbiter.
constexpr std::uint64_t kLongestSleep = 100'000'000;
/// When nothing got done for so long, work may be waiting for work that is not let in.
constexpr std::uint64_t kStuck = 10'000'000;
/// Work never seen before that may be on the device at a time: nobody knows how long it takes.
constexpr std::size_t kMostUnknown = 4;
/// So much work is left when the next piece is let in that takes longer than what may be queued; or a quarter of that piece, since that is
/// how far off a guess may be.
constexpr std::uint64_t kNext = 300'000;
/// So much work is left when the GPU is given away: telling the arbiter, and the next one, takes a part of that, and the guess is off by
/// the rest.
constexpr std::uint64_t kHandover = 100'000;
/// Not beside a kernel that is longer: the hardware interrupts that one for the next tenant's first kernel, even microseconds before its
/// end, and each of the two switches more costs 140 us. It lets shorter ones come to their end (H200: 0.2 ms yes, 2 ms no).
constexpr std::uint64_t kInterrupted = 500'000;
/// Who stands at the gate looks so often when the change is expected, which itself changes with those who come and go.
constexpr std::uint64_t kGlanceEvery = 1'000'000;
/// So long after it was expected a change, or the end of one's own work, is waited for awake.
constexpr std::uint64_t kPatience = 4'000'000;
/// Who comes to a closed gate waits awake for so long: with priority, or with a GPU that nobody uses, it is let in by then.
constexpr std::uint64_t kAtFirst = 600'000;

/// Whoever is back so soon after its last work had ended has not paused.
constexpr std::uint64_t kPause = 20'000;

/// Behind an open gate it is asked so often on average whether anything runs.
constexpr std::uint64_t kSampleEvery = 10'000'000;
/// With many streams, more seldom: so long for each, whose answer costs 0.1 us.
constexpr std::uint64_t kSampleRest = 20'000;

/// So many pieces of work a GPU may have when it catches up with another, however long they are (those that wait for each other seem long),
/// and so many for each GPU are let in for that after the gate has closed.
constexpr std::size_t kFew = 4;
/// So long after the gate has closed, and after anything got done, work that takes longer than it should is taken to wait for what another
/// GPU, which has nothing to do, would be given next.
constexpr std::uint64_t kParted = 1'000'000;

const CUstream kNoStream = reinterpret_cast<CUstream>(~std::uintptr_t{0});

}  // namespace

Gate::Gate(const Driver& driver, std::atomic<std::uint64_t>& waited)
    : driver_(driver),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      waited_(waited),
      random_(static_cast<std::minstd_rand::result_type>(monotonicNanoseconds())) {}

Gate::~Gate() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  ring();
  if (thread_.joinable()) thread_.join();
  close(bell_);
}

void Gate::open(const std::string& socketPath) {
  path_ = socketPath;
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

CUcontext Gate::currentContext() const {
  CUcontext context = nullptr;
  driver_.cuCtxGetCurrent(&context);
  return context;
}

Backlog& Gate::backlogOf(CUcontext context) {
  auto& backlog = backlogs_[context];
  if (backlog == nullptr) {
    CUdevice gpu = -1;
    driver_.cuCtxGetDevice(&gpu);  // it is the current context
    backlog = std::make_unique<Backlog>(driver_, context, gpu, durations_);
    countGpus();
  }
  return *backlog;
}

void Gate::countGpus() {
  std::set<CUdevice> gpus;
  for (const auto& [context, backlog] : backlogs_) gpus.insert(backlog->gpu());
  gpus_ = gpus.size();
}

/// Asking the driver which context is current costs more than the rest of an admission, so the answer is kept.
Backlog& Gate::backlogOf(Pass& pass) {
  const std::uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (pass.backlog_ == nullptr || pass.backlogGeneration_ != generation) {
    pass.backlog_ = &backlogOf(currentContext());
    pass.backlogGeneration_ = generation;
  }
  return *pass.backlog_;
}

void Gate::note(Pass& pass, CUstream stream) {
  const CUcontext context = currentContext();
  const std::lock_guard lock(mutex_);
  backlogOf(context).note(stream);
  if (const std::uint32_t generation = generation_.load(); pass.generation_ != generation) {
    pass.noted_.fill(kNoStream);
    pass.generation_ = generation;
  }
  pass.placeOf(stream) = stream;
}

void Gate::await(Pass& pass, CUstream stream, std::uint64_t shape) {
  pass.stream_ = stream;
  pass.shape_ = shape;
  for (;;) {
    const std::uint32_t word = link_.mailbox().grant.load(std::memory_order_acquire);
    const Grant grant = grantOf(word);
    const bool inside = grant == Grant::closed ? admitLate(pass, word) || awaitGrant(pass, word)
                        : grant == Grant::open ? pass.enterOpen(stream)
                                               : admit(pass);
    if (inside) return;
  }
}

void Gate::standAtTheGate(int more) {
  const std::lock_guard lock(mutex_);
  waiting_ += static_cast<std::uint32_t>(more);
  link_.mailbox().wants.store(waiting_, std::memory_order_seq_cst);
}

/// True when the pass came in late, false when something else holds than the word says.
bool Gate::awaitGrant(Pass& pass, std::uint32_t word) {
  const Clock begin = monotonicNanoseconds();
  standAtTheGate(1);
  link_.poke();
  if (wire::hasProcessorsForSpinning()) spinWhile(word, kAtFirst);
  bool inside = false;
  while (!inside && link_.mailbox().grant.load(std::memory_order_acquire) == word) {
    inside = gpus_ > 1 && admitLate(pass, word);
    if (!inside) awaitChange(word);
  }
  standAtTheGate(-1);
  waited_.fetch_add(monotonicNanoseconds() - begin, std::memory_order_relaxed);
  return inside;
}

/// Asleep, but awake when the change is expected, where there are processors for it.
void Gate::awaitChange(std::uint32_t word) {
  arbiter::Mailbox& mailbox = link_.mailbox();
  if (!wire::hasProcessorsForSpinning()) return wire::futexWait(mailbox.grant, word, gpus_ > 1 ? kGlanceEvery : kLongestSleep);
  const Clock now = monotonicNanoseconds();
  const Clock expected = mailbox.expected.load(std::memory_order_relaxed);
  if (expected == 0 || now >= expected + kPatience)
    wire::futexWait(mailbox.grant, word, kGlanceEvery);
  else if (now + arbiter::kWakeUpNanoseconds < expected)
    wire::futexWait(mailbox.grant, word, std::min(expected - arbiter::kWakeUpNanoseconds - now, kGlanceEvery));
  else
    spinWhile(word, kGlanceEvery / 10);
}

void Gate::spinWhile(std::uint32_t word, Clock nanoseconds) const {
  const auto changed = [&] { return link_.mailbox().grant.load(std::memory_order_acquire) != word; };
  wire::spinUntil(nanoseconds, changed, [] { return false; });
}

/// What is queued may not take longer than the limit, but where one piece of work alone does, the next one follows it closely.
bool Gate::hasRoom(const Backlog& backlog, std::uint64_t shape, Clock since, Clock now) {
  const Clock remaining = backlog.remaining(now);
  const Clock guess = durations_.at(durations_.find(shape));
  if (!backlog.empty() && now - since >= kStuck && backlog.lastDone() < since) return true;
  if (isReserved(now, remaining, guess)) return false;
  const Clock limit = link_.mailbox().queueNanoseconds.load(std::memory_order_relaxed);
  return backlog.unknown() < kMostUnknown && (remaining + guess <= limit || remaining <= std::min(limit, std::max(kNext, guess / 4)));
}

/// One that goes first comes regularly, and would find this work on the device.
bool Gate::isReserved(Clock now, Clock remaining, Clock guess) const {
  const arbiter::Mailbox& mailbox = link_.mailbox();
  return now < mailbox.reservedUntil.load(std::memory_order_acquire) && guess <= mailbox.longestHeld.load(std::memory_order_relaxed) &&
         now + remaining + guess > mailbox.reservedFrom.load(std::memory_order_relaxed);
}

/// A program with several GPUs may have given one of them a kernel that waits for what it is about to give another. So the GPU that was
/// given less catches up; else a window would end between the two, and the first would go on until the next one.
bool Gate::catchesUp(const Backlog& backlog, std::uint64_t shape, Clock now) {
  const bool behind = std::any_of(backlogs_.begin(), backlogs_.end(), [&](const auto& entry) {
    return entry.second->gpu() != backlog.gpu() && entry.second->submissions() > backlog.submissions();
  });
  if (!behind) return false;
  const Clock limit = 2 * Clock{link_.mailbox().queueNanoseconds.load(std::memory_order_relaxed)};
  return backlog.pieces() < kFew || backlog.remaining(now) + durations_.at(durations_.find(shape)) <= limit;
}

/// The counts mislead where the gate closed between two launches that belong together: nobody counts behind an open one. What remains then
/// is one GPU with nothing to do, and another that gets nothing done. The launch that it waits for may stand behind others.
bool Gate::isAwaited(const Backlog& backlog, Clock now) const {
  if (!isParted()) return false;
  Clock since = closedSince_;
  bool late = false;
  for (const auto& [context, each] : backlogs_) {
    since = std::max(since, each->lastDone());
    late = late || each->isUncertain(now);
  }
  return now >= since + (late && !isBusy(backlog.gpu()) ? kParted : kStuck);
}

bool Gate::isBusy(CUdevice gpu) const {
  return std::any_of(backlogs_.begin(), backlogs_.end(),
                     [&](const auto& entry) { return entry.second->gpu() == gpu && !entry.second->empty(); });
}

/// One GPU has work and another has none.
bool Gate::isParted() const {
  return !empty() && std::any_of(backlogs_.begin(), backlogs_.end(), [&](const auto& entry) { return !isBusy(entry.second->gpu()); });
}

/// The bell costs whoever rings it some microseconds.
void Gate::wakeIfAsleepFor(Clock nanoseconds, Clock now) {
  if (asleepUntil_ <= now + nanoseconds) return;
  asleepUntil_ = 0;
  ring();
}

/// The first work since the gate's thread has looked.
void Gate::stir() {
  if (seen_.exchange(Seen::work) == Seen::nothingAndSleeps) ring();
}

/// The gate's thread tells sooner, if it finds anything done.
Gate::Clock Gate::untilRoom(Clock now) const {
  const Clock reserved = link_.mailbox().reservedUntil.load(std::memory_order_relaxed);
  return now < reserved ? std::min(kGlanceEvery, reserved - now) : kGlanceEvery;
}

/// In a window: true when the pass is inside, false when there is no window any more.
bool Gate::admit(Pass& pass) {
  const Clock begin = monotonicNanoseconds();
  std::unique_lock lock(mutex_);
  Clock now = begin;
  const auto mayEnter = [&] {
    const Backlog& backlog = backlogOf(pass);
    return hasRoom(backlog, pass.shape_, begin, now) || catchesUp(backlog, pass.shape_, now);
  };
  // Under the lock: the gate's thread may have said already that nothing more comes.
  for (; grantOf(link_.mailbox().grant.load(std::memory_order_acquire)) == Grant::window; now = monotonicNanoseconds()) {
    if (mayEnter()) return enter(pass, begin, now), true;
    if (!empty()) wakeIfAsleepFor(kLookEvery, now);
    room_.wait_for(lock, std::chrono::nanoseconds(untilRoom(now)));
  }
  return false;
}

/// The gate has closed; true when the pass is inside all the same, because work that still runs may be waiting for what it submits.
bool Gate::admitLate(Pass& pass, std::uint32_t word) {
  const std::lock_guard lock(mutex_);
  const Backlog& backlog = backlogOf(pass);
  const Clock now = monotonicNanoseconds();
  if (late_ >= kFew * gpus_ || answered_ == word || link_.mailbox().grant.load(std::memory_order_acquire) != word) return false;
  if (!catchesUp(backlog, pass.shape_, now)) {
    if (word_ != word || !isAwaited(backlog, now)) return false;
    const bool behind = !isBusy(backlog.gpu());
    for (auto& [context, each] : backlogs_) each->level(behind && each->gpu() != backlog.gpu() ? 1 : 0);
  }
  ++late_;
  enter(pass, now, now);
  return true;
}

/// The gate's thread looks for those inside with the same lock.
void Gate::enter(Pass& pass, Clock came, Clock now) {
  pass.inside_.store(1, std::memory_order_relaxed);
  pass.entered_ = pass.measured_ = true;
  pass.begin_ = now;
  if (idleSince_ != 0) {
    pace_ = pace_ == arbiter::Pace::unknown ? arbiter::Pace::steady : paceUntil(came);
    link_.mailbox().idleSince.store(idleSince_ = 0, std::memory_order_release);
  }
  wakeIfAsleepFor(arbiter::kGapNanoseconds, now);
}

/// Of this window, if what comes next comes then, or nothing does.
arbiter::Pace Gate::paceUntil(Clock then) const {
  const bool paused = idleSince_ != 0 && then >= idleSince_ + kPause;
  return paused && pace_ == arbiter::Pace::steady ? arbiter::Pace::pausing : pace_;
}

void Gate::submitted(Pass& pass) {
  pass.measured_ = false;
  std::atomic<std::uint32_t>& standby = link_.mailbox().standby;
  if (standby.load(std::memory_order_relaxed) != 0 && standby.exchange(0) != 0) link_.poke();
  const std::lock_guard lock(mutex_);
  backlogOf(pass).submitted(pass.stream_, pass.shape_, pass.begin_);
}

void Gate::forget(CUstream stream) {
  const std::scoped_lock locks(looking_, mutex_);
  for (auto& [context, backlog] : backlogs_) backlog->forget(stream);
  ++generation_;
}

void Gate::forget(CUcontext context) {
  const std::scoped_lock locks(looking_, mutex_);
  backlogs_.erase(context);
  countGpus();
  if (backlogs_.empty()) timed_.clear();
  if (current_ == context) current_ = nullptr;
  ++generation_;
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
    timed_.erase(event);  // one that ended with its context may have been there
}

void Gate::recorded(CUevent event) {
  arbiter::Mailbox& mailbox = link_.mailbox();
  if (grantOf(mailbox.grant.load(std::memory_order_relaxed)) == Grant::open) return;
  const std::lock_guard lock(mutex_);
  if (timed_.contains(event)) mailbox.timedRecord.store(monotonicNanoseconds(), std::memory_order_relaxed);
}

// On the gate's own thread.

void Gate::ring() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(bell_, &one, sizeof one);
}

void Gate::run() {
  prctl(PR_SET_NAME, "gate");
  prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds
  for (;;) {
    const bool connected = link_.connected() || link_.connect(path_);
    sleep(connected ? watch() : kReconnect);
    const std::lock_guard lock(mutex_);
    if (ending_) return;
  }
}

/// Until the bell rings, the arbiter says something, or the time is over.
void Gate::sleep(Clock nanoseconds) {
  pollfd waits[] = {{bell_, POLLIN, 0}, {link_.file(), POLLIN, 0}};
  const timespec timeout{static_cast<time_t>(nanoseconds / 1'000'000'000), static_cast<long>(nanoseconds % 1'000'000'000)};
  ppoll(waits, link_.connected() ? 2 : 1, nanoseconds == kForEver ? nullptr : &timeout, nullptr);
  std::uint64_t count = 0;
  if (waits[0].revents != 0) [[maybe_unused]]
    const auto bytes = read(bell_, &count, sizeof count);
  const std::lock_guard lock(mutex_);
  asleepUntil_ = 0;
  if (!link_.connected() || waits[1].revents == 0) return;
  if (!link_.receive()) become(link_.mailbox().grant.load());
  link_.mailbox().wants.store(waiting_, std::memory_order_seq_cst);  // of the new mailbox, if this was one
}

/// Acts upon what the arbiter says; returns how long there is nothing to do.
Gate::Clock Gate::watch() {
  const std::lock_guard looking(looking_);
  std::unique_lock lock(mutex_);
  const std::uint32_t word = link_.mailbox().grant.load(std::memory_order_acquire);
  become(word);
  // Who is inside before or after the look may have submitted something that it did not see.
  const bool inside = someoneInside();
  if (last_ != Grant::open) look(lock);
  if (empty()) std::for_each(backlogs_.begin(), backlogs_.end(), [](const auto& entry) { entry.second->level(0); });
  const Clock now = monotonicNanoseconds();
  const Clock rest = last_ == Grant::open     ? watchOpen(lock)
                     : last_ == Grant::window ? watchWindow(now)
                                              : watchClosed(word, now, inside || someoneInside());
  asleepUntil_ = rest == kForEver ? kForEver : now + rest;
  if (rest != kForEver) return rest;
  // Nobody wakes this thread for a gate that opens, but the first one who comes through it does.
  if (last_ != Grant::open) seen_ = Seen::nothingAndSleeps;
  return link_.mailbox().grant.load() == word ? rest : 0;
}

/// Nothing is measured behind an open gate: it is looked now and then, at moments that fit no program's rhythm, whether anything runs. Each
/// look stands for the time since the one before, and the first one after a pause for as much as lies between two on average.
Gate::Clock Gate::watchOpen(std::unique_lock<std::mutex>& lock) {
  const Clock now = monotonicNanoseconds();
  if (nextSample_ == 0) {
    nextSample_ = now + random_() % kSampleEvery;
    sampledUntil_ = nextSample_ - kSampleEvery;
  }
  if (now < nextSample_) return nextSample_ - now;
  const bool pause = seen_.exchange(Seen::nothing) != Seen::work;
  std::size_t asked = 0;
  const bool running = runs(lock, asked);
  if (running) link_.mailbox().used.fetch_add(now - sampledUntil_, std::memory_order_relaxed);
  Seen nothing = Seen::nothing;
  // Whoever is inside may be in a call that takes long, and submits something at its end.
  const bool mayRest = pause && !running && !someoneInside();
  if (mayRest && seen_.compare_exchange_strong(nothing, Seen::nothingAndSleeps)) return nextSample_ = 0, kForEver;
  const Clock rest = kSampleEvery / 2 + random_() % kSampleEvery + kSampleRest * asked;
  sampledUntil_ = now;
  nextSample_ = now + rest;
  return rest;
}

void Gate::become(std::uint32_t word) {
  if (word == word_) return;
  const Grant grant = grantOf(word);
  // The gate may have been open meanwhile: nobody wakes this thread for that.
  const bool wasOpen = last_ == Grant::open || arbiter::numberOf(word) != arbiter::numberOf(word_) + 1;
  for (auto& [context, backlog] : backlogs_) {
    if (grant == Grant::open)
      backlog->stopMeasuring();
    else if (wasOpen)
      backlog->startMeasuring();
  }
  if (last_ == Grant::open) link_.mailbox().idleSince.store(idleSince_ = 0, std::memory_order_release);
  if (wasOpen) pace_ = arbiter::Pace::unknown;  // nobody saw whether it paused there
  if (grant == Grant::closed)
    wire::spinUntil(
        wire::kLingerNanoseconds, [] { return false; }, [] { return false; });
  word_ = word;
  last_ = grant;
  nextSample_ = 0;
  if (grant == Grant::closed) closedSince_ = monotonicNanoseconds();
  answered_ = 0;
  late_ = 0;
  room_.notify_all();
}

Gate::Clock Gate::watchWindow(Clock now) {
  room_.notify_all();
  // At moments that fit no program's rhythm: else one that pauses at each answer would not be seen to.
  if (!empty() || someoneInside()) return isAboutToClose(now) ? 0 : kLookEvery - random_() % (kLookEvery / 2);
  if (idleSince_ == 0) {
    link_.mailbox().idleSince.store(idleSince_ = now, std::memory_order_release);
    toldIdle_ = false;
  }
  if (now < idleSince_ + arbiter::kGapNanoseconds) return idleSince_ + arbiter::kGapNanoseconds - now;
  if (!toldIdle_) link_.poke();
  toldIdle_ = true;
  return kForEver;
}

Gate::Clock Gate::watchClosed(std::uint32_t word, Clock now, bool inside) {
  const bool drained = empty();
  if (answered_ == word) return drained ? kForEver : kLookEvery;
  if (inside) return kLookEvery / 5;
  if (!drained && ((waiting_ > 0 && isParted()) || !nearlyDrained(now))) return untilHandover(now);
  answered_ = word;
  link_.mailbox().pace.store(paceUntil(closedSince_), std::memory_order_relaxed);
  pace_ = arbiter::Pace::unknown;
  link_.mailbox().idleSince.store(idleSince_ = now, std::memory_order_release);
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
    if (std::any_of(questions.begin(), questions.end(), [](const auto& question) { return !question.done; })) return true;
  }
  return false;
}

/// Unlocked while it asks the driver: a submission does not wait for that.
void Gate::ask(Backlog& backlog, std::vector<Backlog::Question>& questions, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  if (current_ != backlog.context()) driver_.cuCtxSetCurrent(current_ = backlog.context());
  backlog.ask(questions);
  lock.lock();
}

bool Gate::empty() const {
  return std::all_of(backlogs_.begin(), backlogs_.end(), [](const auto& entry) { return entry.second->empty(); });
}

bool Gate::someoneInside() const {
  return std::any_of(passes_.begin(), passes_.end(), [](const Pass* pass) { return pass->inside_.load(std::memory_order_acquire) != 0; });
}

bool Gate::nearlyDrained(Clock now) const {
  return std::all_of(backlogs_.begin(), backlogs_.end(), [&](const auto& entry) {
    const Backlog& backlog = *entry.second;
    return backlog.empty() || (!backlog.isUncertain(now) && backlog.remaining(now) <= kHandover && !backlog.hasLonger(kInterrupted));
  });
}

bool Gate::isAboutToClose(Clock now) const {
  const Clock expected = link_.mailbox().expected.load(std::memory_order_relaxed);
  return wire::hasProcessorsForSpinning() && now < expected + kPatience && now + arbiter::kWakeUpNanoseconds >= expected;
}

/// Once the handover is near, or later than guessed, it is watched for awake, but not for ever. It may also come sooner than guessed.
Gate::Clock Gate::untilHandover(Clock now) const {
  if (!wire::hasProcessorsForSpinning() || now >= closedSince_ + kPatience) return kLookEvery;
  constexpr Clock kAwake = kHandover + arbiter::kWakeUpNanoseconds;
  Clock longest = 0;
  for (const auto& [context, backlog] : backlogs_) longest = std::max(longest, backlog->remaining(now));
  return longest > kAwake ? std::min(longest - kAwake, 4 * kLookEvery) : 0;
}

}  // namespace worker
