// When to say again what happens again and again: a program that is refused something often asks for it without end.
#pragma once

#include <atomic>
#include <chrono>

namespace worker {

/// Of one kind of news; any thread may ask.
class Occasion {
 public:
  using Clock = std::chrono::steady_clock;
  /// The report keeps each line while the session lives, and users are told for as long as it goes on.
  static constexpr std::chrono::minutes kPause{10};

  /// Whether it is to be said now. True at first; then false until it has not been said for a while.
  bool due(Clock::time_point now = Clock::now()) {
    Clock::rep next = next_.load(std::memory_order_relaxed);
    return now.time_since_epoch().count() >= next &&
           next_.compare_exchange_strong(next, (now + kPause).time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Clock::rep> next_{0};
};

}  // namespace worker
