// Submission order of a session's threads: the client numbers the calls, the worker serves them in
// that order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wire {

/// The client's side. Take a ticket after reserving room for the frame, and then publish the frame
/// soon.
class TicketCounter {
 public:
  std::uint64_t take() { return last_.fetch_add(1, std::memory_order_acquire) + 1; }
  std::uint64_t last() const { return last_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// The worker's side. Thread-safe. Threads spin briefly for their turn, then sleep on a futex.
class TicketTurn {
 public:
  /// Waits until all tickets below `ticket` have been passed. True: the caller has the turn until
  /// pass(). False after stop(), or if a hostile client has used the ticket before. Ticket 0 is
  /// unordered: returns at once without a turn.
  bool await(std::uint64_t ticket);
  /// Gives the turn to the next ticket. Call it once for each successful await(). Ignores 0, and
  /// tickets of a hostile client that do not have the turn.
  void pass(std::uint64_t ticket);
  /// Ends every present and future wait.
  void stop();
  bool stopped() const;

 private:
  // The waiter of ticket t sleeps in slot t % kSlots, so that pass() wakes the next in turn and few
  // others.
  static constexpr std::size_t kSlots = 16;
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> word{0};  ///< the futex
    std::atomic<std::uint32_t> sleepers{0};
  };
  bool settled(std::uint64_t ticket) const;
  static void wake(Slot& slot);

  alignas(64) std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint64_t> taken_{0};  ///< the last ticket that got its turn: passed_, or passed_
                                         ///< + 1 while a thread has the turn
  std::atomic<bool> stopped_{false};
  Slot slots_[kSlots];
};

}  // namespace wire
