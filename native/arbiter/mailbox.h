// Page of memory that the arbiter shares with one worker: a memory file, sealed against changes of
// its size. Arbiter and worker may be of different builds, so the layout has a version. All times
// are nanoseconds of CLOCK_MONOTONIC.
//
// A zeroed page means: open without limit. Words that one side does not know stay 0, which must
// mean the behaviour before the word existed. The arbiter keeps its own account of windows and
// trusts no value here. A worker's values affect only:
// - how soon its own window ends,
// - when it is expected next, and what lower allocations keep free for it,
// - how long windows are beside other allocations that say the same,
// - the used time that is reported while it is alone.
#pragma once

#include <atomic>
#include <cstdint>

namespace arbiter {

inline constexpr std::uint32_t kMailboxMagic = 0x3141564e;  // "NVA1"
inline constexpr std::uint32_t kMailboxVersion = 1;
inline constexpr std::size_t kMailboxBytes = 4096;

enum class Grant : std::uint32_t {
  open = 0,    ///< submit without limit
  closed = 1,  ///< submit nothing; set `drained` once none of the worker's work runs
  window = 2,  ///< submit, with at most `queueNanoseconds` of work queued on the device
};

/// The grant word: the grant, and a number that grows with every change, so that an answer belongs
/// to one change.
inline constexpr std::uint32_t kGrantBits = 2;
inline constexpr Grant grantOf(std::uint32_t word) {
  const auto grant = static_cast<Grant>(word & ((1u << kGrantBits) - 1));
  return grant == Grant::closed || grant == Grant::window ? grant : Grant::open;
}
/// The number of a grant word. Consecutive words have consecutive numbers; it wraps after a
/// billion.
inline constexpr std::uint32_t numberOf(std::uint32_t word) { return word >> kGrantBits; }
inline constexpr std::uint32_t nextWord(std::uint32_t word, Grant grant) {
  return ((numberOf(word) + 1) << kGrantBits) | static_cast<std::uint32_t>(grant);
}

/// How continuously a window was used, from its first submission to its end.
enum class Pace : std::uint32_t {
  unknown = 0,  ///< nothing was submitted, or the worker is of an older version
  steady = 1,   ///< at least one GPU had work, except for moments
  pausing = 2,
};

struct Mailbox {
  std::uint32_t magic;
  std::uint32_t version;

  // Written by the arbiter.
  alignas(64) std::atomic<std::uint32_t> grant;  ///< the grant word, a futex
  std::atomic<std::uint32_t> queueNanoseconds;   ///< maximum queued work in a window
  /// when the grant is expected to change next, or a window may end at a pause; 0: unknown
  std::atomic<std::uint64_t> expected;
  std::uint32_t reserved;  ///< written by workers of former versions
  std::atomic<std::uint32_t>
      outranks;  ///< 1: allocations that must yield to this one share its GPUs
  std::atomic<std::uint32_t>
      standby;  ///< 1: standby; when the worker submits, it clears the word and sends a byte
  std::atomic<std::uint32_t> longestHeld;  ///< nanoseconds: longer work may ignore the reservation
  /// when a higher-priority allocation is expected: work that would not end before then waits
  std::atomic<std::uint64_t> reservedFrom;
  std::atomic<std::uint64_t> reservedUntil;  ///< when the reservation ends
  /// share in millionths that the worker keeps to without the arbiter; 0: no limit
  std::atomic<std::uint32_t> shareWithoutArbiter;
  /// seconds that the work ran on while others waited, beyond the node's limit; the worker clears
  /// it
  std::atomic<std::uint32_t> overdue;

  // Written by the worker. After all but the last five, it sends a byte over its connection.
  alignas(64) std::atomic<std::uint32_t> wants;  ///< threads that wait for a change of the grant
  std::atomic<std::uint32_t>
      drained;  ///< the grant word under which no work of the worker runs any more
  std::atomic<std::uint64_t>
      idleSince;  ///< start of the current idle time in this window; 0: work runs
  std::atomic<std::uint64_t> timedRecord;  ///< when an event with timing was last recorded
  std::atomic<std::uint64_t>
      used;                ///< nanoseconds for which work ran behind the open gate, from samples
  std::atomic<Pace> pace;  ///< of the last window; written before `drained`
  /// behind a closed gate: contexts with unfinished work, on the GPU with most of them; 0: unknown
  std::atomic<std::uint32_t> busyContexts;
  /// when work was last submitted in a window; kPauseNanoseconds before that as soon as the thread
  /// that submitted it waits for the GPU
  std::atomic<std::uint64_t> submittedAt;
  /// when that wait ended, so that the work has ended too; else before `submittedAt`
  std::atomic<std::uint64_t> waitedAt;
};
static_assert(sizeof(Mailbox) <= kMailboxBytes && std::atomic<std::uint64_t>::is_always_lock_free);

/// Idle time after which a window ends; the worker reports it then. Handing over at each gap costs
/// more than the gap, because a context switch takes some 0.1 ms.
inline constexpr std::uint64_t kGapNanoseconds = 300'000;

/// A shorter gap is no pause. Tenants that all pause often hand over when nothing was submitted for
/// so long, or the program waits for the GPU: the rest of its work hides the handover.
inline constexpr std::uint64_t kPauseNanoseconds = 20'000;

/// Like kGapNanoseconds, while threads that waited at the gate have not entered yet.
inline constexpr std::uint64_t kLateNanoseconds = 2'000'000;

/// Duration of a wake-up. A thread that waits for a handover spins for this time before it, because
/// the GPU idles during a wake-up.
inline constexpr std::uint64_t kWakeUpNanoseconds = 150'000;

/// Time after the last work of a higher-priority allocation for which its workers and the arbiter
/// stay awake.
inline constexpr std::uint64_t kPromptNanoseconds = 20'000'000;

}  // namespace arbiter
