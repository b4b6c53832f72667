// Which thread launches into a stream. The calls of one thread are in order by its channel. So
// threads with streams of their own need no order between their launches, nor between the waits for
// these.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace interposer {

/// Thread-safe. Streams may share a place: then they count as one. The per-thread default stream is
/// each thread's own, and the legacy one never shares.
class StreamThreads {
 public:
  /// Whether the thread's launch may take a shared ticket: no other thread has launched into the
  /// stream since a launch of this one that did not. Otherwise this launch must not, and the next
  /// one may.
  bool mayShare(std::uint64_t stream, std::uint64_t thread) {
    if (stream <= kPerThread) return stream == kPerThread;
    std::atomic<std::uint64_t>& last = place(stream);
    if (last.load(std::memory_order_seq_cst) == thread) [[likely]]
      return true;
    last.store(thread, std::memory_order_seq_cst);
    return false;
  }
  /// Whether the thread's wait for the stream may take a shared ticket: launches of other threads
  /// come before a launch of this one that took one alone.
  bool mayShareWait(std::uint64_t stream, std::uint64_t thread) const {
    if (stream <= kPerThread) return stream == kPerThread;
    return last_[indexOf(stream)].load(std::memory_order_seq_cst) == thread;
  }
  /// Call after the launch has taken a shared ticket. If another thread has come meanwhile, its
  /// place in the order may be before this launch. So the next launch of any thread takes one anew.
  void shared(std::uint64_t stream, std::uint64_t thread) {
    if (stream <= kPerThread) return;
    std::atomic<std::uint64_t>& last = place(stream);
    if (last.load(std::memory_order_seq_cst) != thread) [[unlikely]]
      last.store(0, std::memory_order_seq_cst);
  }

 private:
  static constexpr std::uint64_t kPerThread = 2;  ///< CU_STREAM_PER_THREAD, the last default one
  static constexpr int kPlacesLog2 = 8;
  static std::size_t indexOf(std::uint64_t stream) {
    return stream * 0x9e3779b97f4a7c15u >> (64 - kPlacesLog2);
  }
  std::atomic<std::uint64_t>& place(std::uint64_t stream) { return last_[indexOf(stream)]; }

  std::array<std::atomic<std::uint64_t>, std::size_t{1} << kPlacesLog2> last_{};
};

}  // namespace interposer
