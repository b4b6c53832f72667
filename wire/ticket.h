// The order in which a session's threads submit: the client numbers the calls, the worker serves them in that order.
#pragma once

#include <atomic>
#include <cstdint>

namespace wire {

/// The client's side. A ticket is taken after the frame's room is reserved and right before it is published.
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
  /// Lets the next ticket go. 0: nothing to do. Called exactly once a ticket.
  void pass(std::uint64_t ticket);
  void stop();

 private:
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint32_t> wakes_{0};     ///< the futex word
  std::atomic<std::uint32_t> sleepers_{0};
  std::atomic<bool> stopped_{false};
};

}  // namespace wire
