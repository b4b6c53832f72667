// Asymmetric barriers, whose cost is on the rare side. membarrier(2) makes every running thread
// execute a full barrier, so the frequent side orders only its compiler. If the kernel or a seccomp
// filter refuses membarrier, both sides execute a fence.
#pragma once

#include <atomic>
#include <cstdint>

namespace wire {

/// A full fence. On x86, an exchange costs less than `mfence`.
inline void fullFence() {
#if defined(__x86_64__)
  std::atomic<std::uint32_t> own{0};
  own.exchange(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Barrier between threads of this process. The frequent side stores, calls frequent(), and loads;
/// the rare side stores, calls rare(), and loads. At least one side then sees the other's store.
class ThreadBarrier {
 public:
  /// Registers the process. Takes 1 us while it has one thread, and some 30 ms after.
  ThreadBarrier();

  void frequent() const {
    if (expedited_) [[likely]]
      std::atomic_signal_fence(std::memory_order_seq_cst);
    else
      fullFence();
  }
  /// Costs 0.5 us.
  void rare() const;

 private:
  bool expedited_;
};

/// Barriers between processes that share memory. Each end of a channel is the frequent side when it
/// publishes, and the rare side before it sleeps.
///
/// Registers this process for the barriers of others. Takes 1 us while it has one thread, and some
/// 30 ms after. Any thread. Until it has returned, or if the kernel refuses, this process executes
/// fences.
void registerForProcessBarriers();

namespace detail {
inline std::atomic<bool> registeredForProcessBarriers{false};
}

inline bool isRegisteredForProcessBarriers() {
  return detail::registeredForProcessBarriers.load(std::memory_order_relaxed);
}

/// Makes this thread and every running thread of every registered process execute a full barrier.
/// False if the kernel refuses.
bool executeProcessBarrier();

}  // namespace wire
