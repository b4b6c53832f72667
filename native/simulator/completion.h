// Completion of one operation of a stream. Shared by the stream's thread, waiters, and operations
// that must follow it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace simulator {

class Completion {
 public:
  bool done() const { return done_.load(std::memory_order_acquire) != 0; }
  void wait() const {
    while (!done()) done_.wait(0, std::memory_order_acquire);
  }
  void finish() {
    time_ = std::chrono::steady_clock::now();
    done_.store(1, std::memory_order_release);
    done_.notify_all();
  }
  /// When the operation ended; valid once done().
  std::chrono::steady_clock::time_point time() const { return time_; }

 private:
  std::atomic<std::uint32_t> done_{0};
  std::chrono::steady_clock::time_point time_;
};

}  // namespace simulator
