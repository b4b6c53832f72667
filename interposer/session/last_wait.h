// Which stream a session has last waited for. The GPU itself tells the program that a wait has
// ended (wire/README.md). The driver learns it later: after half a microsecond, or after the work
// of others to which the GPU turns in between. Until then it says that the stream is not done.
#pragma once

#include <atomic>
#include <cstdint>

namespace interposer {

/// Thread-safe. Streams are told apart by their handles, so not for default streams.
class LastWait {
 public:
  /// A wait for the stream has ended. `changes`: count of changes (submission_order.h) at its
  /// place. `now`: monotonic time in ns.
  void note(std::uint64_t stream, std::uint64_t changes, std::uint64_t now) {
    mark_.store(markOf(stream, changes), std::memory_order_release);
    at_.store(now, std::memory_order_release);
  }
  /// Whether the call at that count was such a wait. While no more is counted, no call has given
  /// the stream work since, but one that shared its turn may have at the same time.
  bool isOf(std::uint64_t stream, std::uint64_t changes) const {
    return mark_.load(std::memory_order_acquire) == markOf(stream, changes);
  }
  /// When the last one ended.
  std::uint64_t at() const { return at_.load(std::memory_order_acquire); }

 private:
  /// Both in one word, so that no thread reads one wait's stream with the count of another.
  static std::uint64_t markOf(std::uint64_t stream, std::uint64_t changes) {
    return stream ^ changes * 0x9e3779b97f4a7c15u;
  }

  // Written at each wait of any thread.
  alignas(64) std::atomic<std::uint64_t> mark_{0};
  std::atomic<std::uint64_t> at_{0};
};

}  // namespace interposer
