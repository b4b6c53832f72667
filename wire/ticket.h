// The order in which a session's threads submit: the client numbers the calls, the worker serves them in that order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace wire {

/// The client's side. A ticket is taken once the frame's room is reserved; from then on the frame must be published, and soon.
class TicketCounter {
 public:
  std::uint64_t take() { return last_.fetch_add(1, std::memory_order_relaxed) + 1; }

 private:
  std::atomic<std::uint64_t> last_{0};
};

/// The worker's side. Threads wait for their turn by spinning shortly, then sleeping on a futex.
class TicketTurn {
 public:
  /// Returns when every ticket below `ticket` has been passed; false when stop() ended the wait. 0 is unordered: returns at once.
  bool await(std::uint64_t ticket);
  /// Lets the next ticket go; called once for each that await() let through. 0, and a ticket that is not the one whose turn it is
  /// (a hostile client's), do nothing.
  void pass(std::uint64_t ticket);
  /// Ends every present and future wait.
  void stop();

 private:
  // The one who waits for ticket t sleeps in slot t % kSlots, so that pass() wakes the next in turn and few others.
  static constexpr std::size_t kSlots = 16;
  struct alignas(64) Slot {
    std::atomic<std::uint32_t> word{0};  ///< the futex
    std::atomic<std::uint32_t> sleepers{0};
  };
  bool settled(std::uint64_t ticket) const;
  static void wake(Slot& slot);

  alignas(64) std::atomic<std::uint64_t> passed_{0};
  std::atomic<bool> stopped_{false};
  Slot slots_[kSlots];
};

}  // namespace wire
