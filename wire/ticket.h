// Submission order of a session's threads: the client numbers the calls, the worker serves them in
// that order. Calls with shared tickets run beside each other, and all others alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wire {

/// A ticket is what the tickets before it add up to: 1 for a shared one, this for another. So it
/// says which tickets precede it. A carry of the lower half only makes a wait longer.
inline constexpr std::uint64_t kTicket = std::uint64_t{1} << 16;

/// The client's side. Take a ticket after reserving room for the frame, and then publish the frame
/// soon.
class TicketCounter {
 public:
  std::uint64_t take() { return next_.fetch_add(kTicket, std::memory_order_seq_cst); }
  /// A shared ticket has no order among those that no other ticket separates.
  std::uint64_t takeShared() { return next_.fetch_add(1, std::memory_order_seq_cst); }
  /// Takes a ticket that is not shared, if it is the expected one.
  bool takeAt(std::uint64_t expected) {
    return next_.compare_exchange_strong(expected, expected + kTicket, std::memory_order_seq_cst);
  }
  std::uint64_t next() const { return next_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> next_{kTicket};
};

/// The worker's side. Thread-safe. Threads spin briefly for their turn, then sleep on a futex.
class TicketTurn {
 public:
  /// Waits until all tickets below `ticket` have been passed; if it is shared, only those that are
  /// not. True: the caller has the turn until pass(), and no other thread has one, except beside
  /// shared tickets. False after stop(), or if a hostile client's ticket breaks that rule. Ticket 0
  /// is unordered: returns at once without a turn.
  bool await(std::uint64_t ticket, bool shared = false);
  /// Gives the turn to the next ticket. Call it once for each successful await(). Ignores 0, and
  /// tickets of a hostile client that do not have the turn.
  void pass(std::uint64_t ticket, bool shared = false);
  /// Passes several shared tickets at once: one that await() let in, and `tickets - 1` that its
  /// caller served behind it without await(), because no other ticket lies between them. Until
  /// then, the first one keeps away all that must be alone.
  void passShared(std::uint64_t tickets);
  /// Ends every present and future wait.
  void stop();
  bool stopped() const;

 private:
  // The waiter of a ticket sleeps in one of these slots, so that pass() wakes the next in turn and
  // few others.
  static constexpr std::size_t kSlots = 16;
  /// In `entered_`: the last ticket in it is not shared, and has not been passed.
  static constexpr std::uint64_t kAlone = std::uint64_t{1} << 63;
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> word{0};  ///< the futex
    std::atomic<std::uint32_t> sleepers{0};
  };
  bool settled(std::uint64_t ticket, bool shared) const;
  Slot& slotOf(std::uint64_t ticket, bool shared);
  void passed(std::uint64_t tickets);
  static void wakeSleepers(Slot& slot);
  static void wake(Slot& slot);

  alignas(64) std::atomic<bool> stopped_{false};
  alignas(64) std::atomic<std::uint64_t> passed_{kTicket};
  alignas(64) std::atomic<std::uint64_t> entered_{kTicket};  ///< those that got their turn
  Slot alone_[kSlots];
  Slot shared_[kSlots];
};

}  // namespace wire
