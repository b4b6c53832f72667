// Rate limit for reports: a program that is refused something often repeats the request.
#pragma once

#include <atomic>
#include <chrono>

namespace worker {

/// Rate limit of one kind of report. Thread-safe.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;
  /// The report keeps each line as long as the session lives.
  static constexpr std::chrono::minutes kInterval{10};

  /// True for the first call, then once per interval.
  bool allows(Clock::time_point now = Clock::now()) {
    Clock::rep next = next_.load(std::memory_order_relaxed);
    return now.time_since_epoch().count() >= next &&
           next_.compare_exchange_strong(next, (now + kInterval).time_since_epoch().count(),
                                         std::memory_order_relaxed);
  }

 private:
  std::atomic<Clock::rep> next_{0};
};

}  // namespace worker
