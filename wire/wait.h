// Waiting for the peer: spin for some tens of microseconds, then sleep in the kernel. An idle end uses no processor time.
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/barrier.h"

namespace wire {

/// How long a wait spins before it sleeps.
inline constexpr std::uint64_t kSpinNanoseconds = 40'000;

/// How long a call of the program spins for its answer. NVIDIA's driver spins in such a call too, and being woken costs some 100 us: 2 %
/// of a copy of 256 MiB (H200). Where the process has few processors it sleeps as soon as everybody else.
std::uint64_t replySpinNanoseconds();

/// Between announcing a sleep and sleeping. Far longer than a store buffer takes to drain, so a value that was published by someone who
/// did not see the announcement is seen here (barrier.h, sleepReason()).
inline constexpr std::uint64_t kLingerNanoseconds = 2'000;

/// The first sleep is short, should the above ever not be long enough. No sleep is endless: a peer that scribbles over the flag
/// can delay the end of a wait, not prevent it.
inline constexpr std::uint64_t kFirstSleepNanoseconds = 1'000'000;
inline constexpr std::uint64_t kLongestSleepNanoseconds = 10'000'000'000;

/// Whether this process may use so many processors that one which waits awake is no loss.
bool hasProcessorsForSpinning();

std::uint64_t monotonicNanoseconds();

/// Sleeps while `word` is `value`, at most that long. Returns early for any reason. The word may lie in memory shared between processes.
void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t nanoseconds);
void futexWakeAll(std::atomic<std::uint32_t>& word);

/// Wakes the one who sleeps on `flag`. Off the fast path.
void wake(std::atomic<std::uint32_t>& flag);

/// Publisher, after barrier::publish().
inline void wakeIfAsleep(std::atomic<std::uint32_t>& flag) {
  if (barrier::sleepReason(flag) != 0) [[unlikely]]
    wake(flag);
}

inline void pauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Where one end waits. Both words change rarely, so that the peer's look at them stays in its cache.
struct Seat {
  std::atomic<std::uint32_t> sleeps;     ///< why the end sleeps, 0 when it is awake; the futex. Set by this end, cleared by both
  std::atomic<std::uint32_t> processor;  ///< the processor it was last seen on, counted from 1. Written by this end
};

/// Notes on which processor this end runs. True when the peer was last seen on the same one: it cannot run while this end spins.
bool sharesProcessor(Seat& mine, const Seat& peer);

/// Polls ready() for that long; true as soon as it is. Gives up early when stop(), asked now and then, says so.
template <class Ready, class Stop>
bool spinUntil(std::uint64_t nanoseconds, Ready ready, Stop stop) {
  constexpr int kPollsPerLookAtTheClock = 512;  // some microseconds: what arrives during a look is seen later
  constexpr int kPollsPerPause = 4;
  std::uint64_t deadline = 0;
  do {
    for (int poll = 0; poll < kPollsPerLookAtTheClock; ++poll) {
      if (ready()) return true;
      // A pause takes 40 ns on some processors, as long as what is waited for takes to arrive: so not after each look.
      if (poll % kPollsPerPause == 0) pauseProcessor();
    }
    if (stop()) return false;
    if (deadline == 0) deadline = monotonicNanoseconds() + nanoseconds;
  } while (monotonicNanoseconds() < deadline);
  return false;
}

/// Returns when ready() is true, which also must become true when the wait is ended. `reason` tells the peer why this end sleeps.
template <class Ready>
void waitUntil(Seat& mine, const Seat& peer, std::uint32_t reason, Ready ready, std::uint64_t spinNanoseconds = kSpinNanoseconds) {
  const auto hopeless = [&] { return sharesProcessor(mine, peer); };
  if (spinUntil(spinNanoseconds, ready, hopeless)) return;
  for (std::uint64_t sleep = kFirstSleepNanoseconds; !ready(); sleep = kLongestSleepNanoseconds) {
    barrier::announceSleep(mine.sleeps, reason);
    if (!spinUntil(kLingerNanoseconds, ready, hopeless)) futexWait(mine.sleeps, reason, sleep);
    barrier::retractSleep(mine.sleeps);
    sharesProcessor(mine, peer);
  }
}

}  // namespace wire
