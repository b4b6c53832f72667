// Counts what the session ran, for its report.
#pragma once

#include <atomic>
#include <cstdint>

namespace worker {

class Launches {
 public:
  void count() { launches_.fetch_add(1, std::memory_order_relaxed); }
  std::uint64_t total() const { return launches_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> launches_{0};
};

}  // namespace worker
