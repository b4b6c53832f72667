// The page that the arbiter shares with one worker: a memory file, sealed against any change of size. Both ends may be of different
// builds, so the layout has a version. All times are nanoseconds of CLOCK_MONOTONIC.
//
// A page of zeros means: open without limit. The arbiter keeps its own account of windows and believes nothing that it reads here: what a
// worker writes decides how soon its own window ends, by when it comes, what those that must yield to it keep free, how long windows are
// beside others that say the same, and, where it is alone, what is shown as the time that it had.
#pragma once

#include <atomic>
#include <cstdint>

namespace arbiter {

inline constexpr std::uint32_t kMailboxMagic = 0x3141564e;  // "NVA1"
inline constexpr std::uint32_t kMailboxVersion = 1;
inline constexpr std::size_t kMailboxBytes = 4096;

enum class Grant : std::uint32_t {
  open = 0,    ///< submit as you like
  closed = 1,  ///< submit nothing; say `drained` once nothing of yours runs
  window = 2,  ///< submit, with no more than `queueLimit` waiting on the device
};

/// The grant word: what holds, and a number that grows with every change, so that an answer belongs to one change.
inline constexpr std::uint32_t kGrantBits = 2;
inline constexpr Grant grantOf(std::uint32_t word) {
  const auto grant = static_cast<Grant>(word & ((1u << kGrantBits) - 1));
  return grant == Grant::closed || grant == Grant::window ? grant : Grant::open;
}
/// Of two words that follow each other, one more than that of the first; it comes round after a billion.
inline constexpr std::uint32_t numberOf(std::uint32_t word) { return word >> kGrantBits; }
inline constexpr std::uint32_t nextWord(std::uint32_t word, Grant grant) {
  return ((numberOf(word) + 1) << kGrantBits) | static_cast<std::uint32_t>(grant);
}

/// How work went on in a window, from the first that was submitted until the window ended.
enum class Pace : std::uint32_t {
  unknown = 0,  ///< nothing was submitted; workers of former versions say no more
  steady = 1,   ///< there was always some, but for moments, on one GPU or another
  pausing = 2,
};

struct Mailbox {
  std::uint32_t magic;
  std::uint32_t version;

  // Written by the arbiter.
  alignas(64) std::atomic<std::uint32_t> grant;  ///< the grant word, a futex
  std::atomic<std::uint32_t> queueNanoseconds;   ///< the queue limit of a window
  std::atomic<std::uint64_t> expected;           ///< when the grant is expected to change next; 0: nobody knows
  std::uint32_t reserved;                        ///< workers of former versions write it
  std::atomic<std::uint32_t> outranks;           ///< 1: its GPUs are also those of allocations that must yield to it
  std::atomic<std::uint32_t> standby;            ///< 1: a window for later; the worker clears it and sends a byte once it submits
  std::atomic<std::uint32_t> longestHeld;        ///< nanoseconds: longer work may be submitted in spite of the reservation
  std::atomic<std::uint64_t> reservedFrom;       ///< one that goes first is expected then: what would not be done by then waits
  std::atomic<std::uint64_t> reservedUntil;      ///< until it has come or is not expected any more

  // Written by the worker, which then sends a byte over its connection, except for the last three.
  alignas(64) std::atomic<std::uint32_t> wants;  ///< threads that wait for the grant to change
  std::atomic<std::uint32_t> drained;            ///< the grant word under which nothing of the worker runs any more
  std::atomic<std::uint64_t> idleSince;          ///< nothing has run in this window since then; 0: something does
  std::atomic<std::uint64_t> timedRecord;        ///< when an event that takes the time was recorded last
  std::atomic<std::uint64_t> used;               ///< nanoseconds for which the open gate's work ran, from samples
  std::atomic<Pace> pace;                        ///< in the window that ended last; written before `drained`
};
static_assert(sizeof(Mailbox) <= kMailboxBytes && std::atomic<std::uint64_t>::is_always_lock_free);

/// How long a window is kept although nothing runs in it: the worker says so after this time. Handing over at each gap costs more than
/// the gap (a switch of contexts takes some 0.1 ms).
inline constexpr std::uint64_t kGapNanoseconds = 300'000;

/// How long it is kept for threads that stood at the gate and have not come in yet.
inline constexpr std::uint64_t kLateNanoseconds = 2'000'000;

/// Being woken takes so long. Who waits for a handover is awake by then: each microsecond that the GPU stands idle is lost to all.
inline constexpr std::uint64_t kWakeUpNanoseconds = 150'000;

/// So long after its last work, arbiter and workers of one to whom others must yield stay awake.
inline constexpr std::uint64_t kPromptNanoseconds = 20'000'000;

}  // namespace arbiter
