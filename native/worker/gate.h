// Where a session's work waits for its window of GPU time. Open, as long as nobody else wants the GPU, it costs some nanoseconds. In a
// window it lets in as much as the device can do in a few milliseconds, so that the window can end; what it learns of durations for that is
// in backlog.h. Whom the window belongs to, the arbiter decides (native/arbiter/).
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/arbiter_link.h"
#include "native/worker/backlog.h"
#include "native/worker/durations.h"

namespace worker {

class Gate {
 public:
  /// `waited` grows by the nanoseconds that the session's work stands before the closed gate.
  Gate(const Driver& driver, std::atomic<std::uint64_t>& waited);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Obeys the arbiter that listens there; while nobody does, the gate is open.
  void open(const std::string& socketPath);

  /// Others must yield to this session's allocation.
  bool outranks() const { return link_.mailbox().outranks.load(std::memory_order_relaxed) != 0; }

  class Pass;

  /// The stream, or the context and all its streams, is about to be destroyed.
  void forget(CUstream stream);
  void forget(CUcontext context);
  void forget(CUevent event);

  /// Events that take the time: a window does not end between two of them that are close.
  void created(CUevent event, unsigned flags);
  void recorded(CUevent event);

 private:
  using Clock = std::uint64_t;

  // On the threads that submit.
  void note(Pass& pass, CUstream stream);
  void await(Pass& pass, CUstream stream, std::uint64_t shape);
  bool awaitGrant(Pass& pass, std::uint32_t word);
  void awaitChange(std::uint32_t word);
  void spinWhile(std::uint32_t word, Clock nanoseconds) const;
  void standAtTheGate(int more);
  bool admit(Pass& pass);
  bool admitLate(Pass& pass, std::uint32_t word);
  void enter(Pass& pass, Clock came, Clock now);
  arbiter::Pace paceUntil(Clock then) const;
  bool catchesUp(const Backlog& backlog, std::uint64_t shape, Clock now);
  bool isAwaited(const Backlog& backlog, Clock now) const;
  bool isBusy(CUdevice gpu) const;
  bool isParted() const;
  void submitted(Pass& pass);
  Backlog& backlogOf(CUcontext context);
  void countGpus();
  Backlog& backlogOf(Pass& pass);
  CUcontext currentContext() const;
  bool hasRoom(const Backlog& backlog, std::uint64_t shape, Clock since, Clock now);
  bool isReserved(Clock now, Clock remaining, Clock guess) const;
  Clock untilRoom(Clock now) const;
  void wakeIfAsleepFor(Clock nanoseconds, Clock now);
  void stir();

  // On the gate's own thread.
  void run();
  void sleep(Clock nanoseconds);
  void ring() const;
  Clock watch();
  Clock watchOpen(std::unique_lock<std::mutex>& lock);
  Clock watchWindow(Clock now);
  Clock watchClosed(std::uint32_t word, Clock now, bool inside);
  void become(std::uint32_t word);
  void look(std::unique_lock<std::mutex>& lock);
  bool runs(std::unique_lock<std::mutex>& lock, std::size_t& asked);
  void ask(Backlog& backlog, std::vector<Backlog::Question>& questions, std::unique_lock<std::mutex>& lock);
  bool empty() const;
  bool someoneInside() const;
  bool nearlyDrained(Clock now) const;
  Clock untilHandover(Clock now) const;
  bool isAboutToClose(Clock now) const;

  const Driver& driver_;
  ArbiterLink link_;
  std::string path_;
  const int bell_;  ///< eventfd: wakes the gate's thread
  std::atomic<std::uint64_t>& waited_;
  std::atomic<std::uint32_t> generation_{1};  ///< changes when a stream that was noted may be another one now

  /// What has come through the open gate since its thread has looked.
  enum class Seen : std::uint32_t { work, nothing, nothingAndSleeps };
  std::atomic<Seen> seen_{Seen::nothing};

  std::mutex looking_;        ///< held by the gate's thread while it asks the driver; locked before the other
  mutable std::mutex mutex_;  ///< of all below
  std::condition_variable room_;
  std::vector<Pass*> passes_;
  Durations durations_;
  std::map<CUcontext, std::unique_ptr<Backlog>> backlogs_;
  std::atomic<std::size_t> gpus_{0};  ///< of the backlogs; read without the lock, too
  std::unordered_set<CUevent> timed_;
  CUcontext current_ = nullptr;                 ///< of the gate's thread
  std::uint32_t waiting_ = 0;                   ///< threads that stand before the closed gate
  std::uint32_t word_ = 0;                      ///< the grant word that the gate's thread has acted upon last
  arbiter::Grant last_ = arbiter::Grant::open;  ///< what it says
  std::size_t late_ = 0;                        ///< pieces of work that were let in since the gate closed
  std::uint32_t answered_ = 0;                  ///< the closed grant that was answered with `drained`
  Clock closedSince_ = 0;
  Clock idleSince_ = 0;  ///< 0: something runs
  bool toldIdle_ = false;
  arbiter::Pace pace_ = arbiter::Pace::unknown;  ///< of this window, or the one that has just ended
  Clock asleepUntil_ = 0;                        ///< of the gate's thread
  std::minstd_rand random_;
  Clock nextSample_ = 0;    ///< 0: none, until something is submitted
  Clock sampledUntil_ = 0;  ///< the time that the next one stands for begins then
  bool ending_ = false;
  std::thread thread_;
};

/// One thread's way through the gate: enter() before it submits, leave() after. It is inside from then until then.
class Gate::Pass {
 public:
  explicit Pass(Gate& gate);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  /// Returns when work may be submitted to the stream. The shape is what its duration depends on.
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
    inside_.store(0, std::memory_order_release);
  }
  /// Another context is current: the default streams are other ones.
  void contextChanged() {
    generation_ = 0;
    backlog_ = nullptr;
  }

 private:
  friend class Gate;

  // Saying "inside" before looking at the grant takes a store before a load, and a fence between them would cost more than all the rest.
  // So there is none: whoever closes the gate waits until store buffers have drained (wire/barrier.h does the same).
  bool enterOpen(CUstream stream) {
    const arbiter::Mailbox& mailbox = mailbox_;
    inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (arbiter::grantOf(mailbox.grant.load(std::memory_order_acquire)) != arbiter::Grant::open) [[unlikely]]
      return inside_.store(0, std::memory_order_release), false;
    if (gate_.seen_.load(std::memory_order_relaxed) != Seen::work) [[unlikely]]
      gate_.stir();
    CUstream& noted = placeOf(stream);
    if (noted != stream || generation_ != gate_.generation_.load(std::memory_order_relaxed)) [[unlikely]]
      gate_.note(*this, stream);
    return entered_ = true;
  }

  CUstream& placeOf(CUstream stream) {
    const auto number = reinterpret_cast<std::uintptr_t>(stream);
    return noted_[(number ^ number >> 4 ^ number >> 8) % noted_.size()];
  }

  Gate& gate_;
  arbiter::Mailbox& mailbox_;
  alignas(64) std::atomic<std::uint32_t> inside_{0};
  bool entered_ = false;
  bool measured_ = false;
  CUstream stream_ = nullptr;
  std::uint64_t shape_ = 0;
  std::uint64_t begin_ = 0;              ///< when it was let in
  Backlog* backlog_ = nullptr;           ///< of the current context
  std::uint32_t backlogGeneration_ = 0;  ///< since then it may have ended
  std::uint32_t generation_ = 0;
  std::array<CUstream, 8> noted_{};  ///< streams that the gate knows of
};

}  // namespace worker
