// Gate: a session's work waits here for its window of GPU time. The arbiter (native/arbiter/)
// assigns windows. While no other tenant wants the GPU, the gate is open and costs some
// nanoseconds. In a window, it limits the queued work to a few milliseconds, so that the window can
// end. backlogs.h estimates the unfinished work on the device.
//
// gate.cpp runs on the threads that submit, gate_watch.cpp on the gate's own thread.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/gate/arbiter_link.h"
#include "native/worker/gate/backlogs.h"
#include "native/worker/gate/durations.h"
#include "native/worker/gate/pauses.h"
#include "native/worker/gate/sampling.h"
#include "native/worker/gate/self_limit.h"
#include "native/worker/session/captures.h"
#include "wire/process_barrier.h"
#include "wire/wait.h"

namespace worker {

class Gate {
 public:
  /// `waited`: incremented by the nanoseconds that work waits at the closed gate. `captures`: of
  /// the session; they begin only while blind() is held.
  Gate(const Driver& driver, std::atomic<std::uint64_t>& waited, const Captures& captures);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Connects to the arbiter at this socket. The gate is closed until the arbiter's first grant.
  /// While the arbiter is away later, a session with a fixed share limits itself, and other
  /// sessions pass. Without a call of open() the gate lets everything pass.
  void open(const std::string& socketPath);
  /// Sets the function that the gate's thread calls when the session's work has overrun its window
  /// by more seconds than the node allows. Call it before open().
  void onOverdue(std::function<void(std::uint32_t seconds)> overdue) {
    overdue_ = std::move(overdue);
  }

  /// Whether other allocations must yield to this one.
  bool outranks() const { return link_.mailbox().outranks.load(std::memory_order_relaxed) != 0; }

  /// Whether a marker, such as an event, may enter a stream without waiting for a window: through
  /// an open gate, and a few after each piece of work. A marker takes no GPU time and belongs to
  /// the work before it. But each makes the GPU switch to this session: beside a program that
  /// records events in a loop, a neighbour keeps 0.75 of its rate (H200, 2026-11-23).
  bool letsMarkerPass() {
    return arbiter::grantOf(link_.mailbox().grant.load(std::memory_order_relaxed)) ==
               arbiter::Grant::open ||
           freeMarkers_.fetch_sub(1, std::memory_order_relaxed) > 0;
  }
  /// A copy has passed beside the gate. It earns a free marker per MiB: a marker costs the
  /// neighbour less than the copy.
  void copied(std::uint64_t bytes) {
    const std::uint64_t more = std::min<std::uint64_t>(bytes >> 20, kFreeMarkers);
    const int now = std::max(freeMarkers_.load(std::memory_order_relaxed), 0);
    freeMarkers_.store(std::min(now + static_cast<int>(more), kFreeMarkers),
                       std::memory_order_relaxed);
  }

  class Pass;

  /// Call before the stream, or the context with all its streams, is destroyed. The work of a
  /// stream goes on, and is waited for when a window ends. That of a context ends here.
  void forget(CUstream stream);
  void forget(CUcontext context);
  void forget(CUevent event);

  /// Call before a stream begins a capture, or joins one. An error refuses that, because the gate
  /// could not tell when the work before it ends.
  CUresult aboutToCapture(CUstream stream);
  /// While it is held, the gate asks the driver about no stream: one that begins to capture in
  /// between would be invalidated.
  std::unique_lock<std::mutex> blind() { return std::unique_lock(looking_); }

  /// During its lifetime, the session has no work on the GPU and submits none. The gate asks the
  /// driver nothing, and answers the arbiter.
  class Stillness {
   public:
    explicit Stillness(Gate& gate) : gate_(gate) { gate_.setStill(true); }
    ~Stillness() { gate_.setStill(false); }
    Stillness(const Stillness&) = delete;
    Stillness& operator=(const Stillness&) = delete;

   private:
    Gate& gate_;
  };

  /// Events with timing: a window does not end between two of them that are close.
  void created(CUevent event, unsigned flags);
  void recorded(CUevent event);

 private:
  using Clock = std::uint64_t;
  static constexpr int kFreeMarkers = 16;
  /// Maximum interval between queries of the oldest work. A query costs 0.1 us.
  static constexpr Clock kLookEvery = 50'000;
  /// How long threads keep spinning after the expected time of a change of the grant or the end of
  /// work.
  static constexpr Clock kPatience = 4'000'000;

  // On the threads that submit.
  void note(Pass& pass, CUstream stream);
  void await(Pass& pass, CUstream stream, std::uint64_t shape);
  bool awaitGrant(Pass& pass, std::uint32_t word);
  void awaitChange(std::uint32_t word);
  void spinWhile(std::uint32_t word, Clock nanoseconds) const;
  void countWaiting(int more);
  bool admit(Pass& pass);
  bool admitLate(Pass& pass, std::uint32_t word);
  void enter(Pass& pass, Clock came, Clock now);
  bool catchesUp(const Backlog& backlog, std::uint64_t shape, Clock now);
  void submitted(Pass& pass);
  void submittedBesideCapture(Pass& pass);
  Backlog& backlogOf(Pass& pass);
  CUcontext contextOf(CUstream stream) const;
  bool hasRoom(const Backlog& backlog, std::uint64_t shape, Clock since, Clock now);
  bool isReserved(Clock now, Clock remaining, Clock guess) const;
  Clock untilRoom(Clock now) const;
  void wakeIfAsleepFor(Clock nanoseconds, Clock now);
  void noteWork();
  bool retire(CUstream stream);
  bool isBusy(CUcontext context);
  void setStill(bool still);

  // On the gate's own thread.
  void run();
  void sleep(Clock nanoseconds);
  void wake() const;
  Clock limitItself();
  Clock watch();
  Clock watchOpen(std::unique_lock<std::mutex>& lock);
  Clock watchWindow(Clock now);
  Clock freshPause(Clock now) const;
  void tellPause(Clock now);
  void spinInWindow() const;
  Clock watchClosed(std::uint32_t word, Clock now, bool inside);
  void become(std::uint32_t word);
  void look(std::unique_lock<std::mutex>& lock);
  bool runs(std::unique_lock<std::mutex>& lock, std::size_t& asked);
  void ask(Backlog& backlog, std::vector<Backlog::Question>& questions,
           std::unique_lock<std::mutex>& lock);
  bool someoneInside() const;
  bool someoneUncounted() const;
  Clock untilHandover(Clock now) const;
  bool isAboutToClose(Clock now) const;

  const Driver& driver_;
  const Captures& captures_;
  const wire::ThreadBarrier barrier_;
  ArbiterLink link_;
  SelfLimit limit_;  ///< of the gate's thread
  std::function<void(std::uint32_t)> overdue_;
  std::string path_;
  const int wake_;  ///< eventfd: wakes the gate's thread
  std::atomic<std::uint64_t>& waited_;
  std::atomic<std::uint32_t> generation_{
      1};  ///< changes when a noted stream may have been replaced by another one

  /// Work that has passed the open gate since the gate's thread last looked.
  enum class Seen : std::uint32_t { work, nothing, nothingAndSleeps };
  std::atomic<Seen> seen_{Seen::nothing};

  std::atomic<int> freeMarkers_{kFreeMarkers};

  std::mutex oneByOne_;  ///< held from await() to submitted(), so that each finds the work of the
                         ///< others counted; locked before the next two
  std::mutex
      looking_;  ///< held by the gate's thread while it asks the driver; locked before the other
  mutable std::mutex mutex_;  ///< guards all members below
  std::condition_variable room_;
  std::vector<Pass*> passes_;
  Backlogs backlogs_;
  std::unordered_set<CUevent> timed_;
  CUcontext current_ = nullptr;  ///< of the gate's thread
  std::uint32_t waiting_ = 0;    ///< threads that stand before the closed gate
  std::uint32_t page_ = 0;       ///< link_.changes() when the gate's thread last looked
  std::uint32_t word_ = 0;       ///< the grant word that the gate's thread acted on last
  arbiter::Grant last_ = arbiter::Grant::open;  ///< its grant
  std::size_t late_ = 0;                        ///< pieces of work admitted since the gate closed
  std::uint32_t answered_ = 0;  ///< the closed grant that was answered with `drained`
  Clock closedSince_ = 0;
  Pauses pauses_;  ///< of this window, or of the last one
  bool toldIdle_ = false;
  bool still_ = false;     ///< no work exists (Stillness)
  Clock toldPause_ = 0;    ///< the last submission before the pause that was reported last
  Clock asleepUntil_ = 0;  ///< of the gate's thread
  std::minstd_rand random_;
  Sampling sampling_;  ///< behind an open gate
  bool ending_ = false;
  std::thread thread_;
};

/// One thread's passage: it is inside the gate from enter(), before it submits work, to leave().
class Gate::Pass {
 public:
  explicit Pass(Gate& gate);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Waits until work may be submitted to the stream. `shape`: what the work's duration depends on.
  void enter(CUstream stream, std::initializer_list<std::uint64_t> shape) {
    if (!enterOpen(stream)) [[unlikely]]
      gate_.await(*this, stream, shapeOf(shape));
  }
  /// The work has been submitted, or refused. Does nothing without enter().
  void leave() {
    if (!entered_) return;
    entered_ = false;
    if (measured_) [[unlikely]]
      gate_.submitted(*this);
    if (perThread_ && gate_.captures_.any()) [[unlikely]]
      gate_.submittedBesideCapture(*this);
    inside_.store(0, std::memory_order_release);
  }
  /// The same, for work that a capture took: it does not run.
  void leaveUnmeasured() {
    measured_ = perThread_ = false;
    turn_ = {};
    leave();
  }
  /// The program waits for the GPU. If no thread has submitted work after this one, it pauses, and
  /// its work still runs; after endWait() it has ended.
  void beginWait() {
    waits_ = begin_ != 0 && mailbox_.submittedAt.load(std::memory_order_relaxed) == begin_;
    if (waits_) mailbox_.submittedAt.store(pauseBegan(), std::memory_order_relaxed);
  }
  void endWait() {
    if (!std::exchange(waits_, false)) return;
    if (mailbox_.submittedAt.load(std::memory_order_relaxed) == pauseBegan())
      mailbox_.waitedAt.store(wire::monotonicNanoseconds(), std::memory_order_relaxed);
  }
  /// Whether the submitted work is measured, and its stream.
  bool measures() const { return measured_; }
  CUstream stream() const { return stream_; }
  /// The current context has changed, and the default streams with it.
  void contextChanged() {
    generation_ = 0;
    backlog_ = nullptr;
  }

 private:
  friend class Gate;

  // The store of `inside_` must precede the load of the grant. A fence would cost more than the
  // rest of this function. So the gate's thread makes this thread execute a barrier (membarrier)
  // when the gate closes, where the kernel supports that.
  bool enterOpen(CUstream stream) {
    const arbiter::Mailbox& mailbox = mailbox_;
    inside_.store(kUncounted, std::memory_order_relaxed);
    gate_.barrier_.frequent();
    if (arbiter::grantOf(mailbox.grant.load(std::memory_order_acquire)) != arbiter::Grant::open)
        [[unlikely]]
      return inside_.store(0, std::memory_order_release), false;
    if (gate_.seen_.load(std::memory_order_relaxed) != Seen::work) [[unlikely]]
      gate_.noteWork();
    CUstream& noted = placeOf(stream);
    if (noted != stream || generation_ != gate_.generation_.load(std::memory_order_relaxed))
        [[unlikely]]
      gate_.note(*this, stream);
    perThread_ = stream == CU_STREAM_PER_THREAD;
    return entered_ = true;
  }

  Backlog::Place at(CUstream stream) const {
    return {stream, stream == CU_STREAM_PER_THREAD ? this : nullptr};
  }

  std::uint64_t pauseBegan() const { return begin_ - arbiter::kPauseNanoseconds; }

  CUstream& placeOf(CUstream stream) {
    const auto number = reinterpret_cast<std::uintptr_t>(stream);
    return noted_[(number ^ number >> 4 ^ number >> 8) % noted_.size()];
  }

  Gate& gate_;
  arbiter::Mailbox& mailbox_;
  /// Inside since the gate was open: what the thread submits is not counted.
  static constexpr std::uint32_t kUncounted = 1;
  static constexpr std::uint32_t kCounted = 2;
  alignas(64) std::atomic<std::uint32_t> inside_{0};
  bool entered_ = false;
  bool measured_ = false;
  std::unique_lock<std::mutex> turn_;  ///< of `oneByOne_`, while `measured_`
  bool perThread_ = false;             ///< inside for the per-thread default stream
  bool waits_ = false;                 ///< it submitted last, and waits for the GPU
  CUstream stream_ = nullptr;
  std::uint64_t shape_ = 0;
  std::uint64_t begin_ = 0;              ///< when it was let in
  Backlog* backlog_ = nullptr;           ///< of the current context
  std::uint32_t backlogGeneration_ = 0;  ///< since then it may have ended
  std::uint32_t generation_ = 0;
  std::array<CUstream, 8> noted_{};  ///< streams that the gate knows of
};

}  // namespace worker
