// Waiting for the peer: spin for some 40 us, then sleep in the kernel. An idle end uses no
// processor time.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/barrier.h"

namespace wire {

/// Spin time before a sleep.
inline constexpr std::uint64_t kSpinNanoseconds = 40'000;

/// Spin time in ns of a call that waits for its reply. NVIDIA's driver spins too, and a wake-up
/// costs some 100 us: 2 % of a copy of 256 MiB (H200). A process with few processors sleeps after
/// kSpinNanoseconds.
std::uint64_t replySpinNanoseconds();

/// Maximum sleep. A peer that overwrites the flag can delay the end of a wait, but not prevent it.
inline constexpr std::uint64_t kLongestSleepNanoseconds = 10'000'000'000;

/// Maximum of the one sleep during which the peer may not know yet that it must execute fences.
inline constexpr std::uint64_t kSleepWithoutBarrierNanoseconds = 1'000'000;

/// Whether this process has enough processors to spend one on spinning.
bool hasProcessorsForSpinning();

std::uint64_t monotonicNanoseconds();

/// Sleeps while `word` is `value`, for at most `nanoseconds`. May return early for any reason. The
/// word may be in shared memory.
void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t nanoseconds);
void futexWakeAll(std::atomic<std::uint32_t>& word);

/// Wakes the sleeper on `flag`. Not on the fast path.
void wake(std::atomic<std::uint32_t>& flag);

inline void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// State of a waiting end. Its words change rarely, so they stay in the peer's cache.
struct Seat {
  std::atomic<std::uint32_t> sleeps;  ///< why the end sleeps, 0 when it is awake; the futex. Set by
                                      ///< this end, cleared by both
  std::atomic<std::uint32_t>
      processor;  ///< the processor it was last seen on, counted from 1. Written by this end
  std::atomic<std::uint32_t>
      expedites;  ///< 1: this end executes a process barrier before it sleeps. Written by this end
};

/// Notes whether this end can execute process barriers. Call it once, before anything is published
/// to this end.
inline void takeSeat(Seat& mine) {
  barrier::note(mine.expedites, std::uint32_t{executeProcessBarrier()});
}

/// Publisher, after barrier::publish(): returns why the peer sleeps, or 0 if it is awake.
inline std::uint32_t sleepReason(const Seat& peer) {
  return barrier::sleepReason(peer.sleeps, peer.expedites);
}

/// Notes the processor that this end runs on, counted from 1; 0 if it is unknown.
std::uint32_t noteProcessor(Seat& mine);

/// Publisher, after barrier::publish(): wakes the peer if it sleeps. It may have slept because this
/// end was last seen on its processor, and has moved since.
inline void wakeIfAsleep(Seat& mine, Seat& peer) {
  if (sleepReason(peer) == 0) [[likely]]
    return;
  noteProcessor(mine);
  wake(peer.sleeps);
}

/// Sleeper, after barrier::announceSleep(): returns how long it may sleep, in ns. If the program
/// installs a seccomp filter, the kernel may refuse membarrier from then on; the peer then executes
/// fences.
inline std::uint64_t settleBeforeSleep(Seat& mine) {
  if (barrier::glance(mine.expedites) == 0 || executeProcessBarrier())
    return kLongestSleepNanoseconds;
  barrier::note(mine.expedites, std::uint32_t{0});
  return kSleepWithoutBarrierNanoseconds;
}

/// Notes the processor of this end. True if the peer was last seen on the same one: it cannot run
/// while this end spins.
bool sharesProcessor(Seat& mine, const Seat& peer);

/// Polls ready() for up to `nanoseconds`. True as soon as it is true. Returns false early if
/// stop(), which is called now and then, returns true.
template <class Ready, class Stop>
bool spinUntil(std::uint64_t nanoseconds, Ready ready, Stop stop) {
  constexpr int kPollsPerLookAtTheClock =
      512;  // some microseconds; reading the clock delays the polls
  constexpr int kPollsPerPause = 4;
  std::uint64_t deadline = 0;
  do {
    for (int poll = 0; poll < kPollsPerLookAtTheClock; ++poll) {
      if (ready()) return true;
      // A pause takes 40 ns on some processors, as long as data takes to arrive. So not every poll
      // pauses.
      if (poll % kPollsPerPause == 0) pauseProcessor();
    }
    if (stop()) return false;
    if (deadline == 0) deadline = monotonicNanoseconds() + nanoseconds;
  } while (monotonicNanoseconds() < deadline);
  return false;
}

/// Waits until ready() is true, which must also become true to end the wait. `reason` tells the
/// peer why this end sleeps.
template <class Ready>
void waitUntil(Seat& mine, const Seat& peer, std::uint32_t reason, Ready ready,
               std::uint64_t spinNanoseconds = kSpinNanoseconds) {
  const auto hopeless = [&] { return sharesProcessor(mine, peer); };
  if (spinUntil(spinNanoseconds, ready, hopeless)) return;
  while (!ready()) {
    barrier::announceSleep(mine.sleeps, reason);
    const std::uint64_t longest = settleBeforeSleep(mine);
    if (!ready()) futexWait(mine.sleeps, reason, longest);
    barrier::retractSleep(mine.sleeps);
    sharesProcessor(mine, peer);
  }
}

}  // namespace wire
