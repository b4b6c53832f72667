// Every atomic operation on memory that two threads share, by name, each with its partner. The rest of wire/ uses no memory order.
//
// Waking a sleeper needs a store (the data) to be ordered before a load (the sleeping flag) on one side, and the reverse on the other.
// The fence that this takes on the publishing side would wait for the store buffer to drain at every frame. So the publisher goes
// without, and the sleeper, who has time, makes up for it: see announceSleep() and wait.h.
#pragma once

#include <atomic>
#include <cstdint>

namespace wire::barrier {

/// Makes what was written before it visible to whoever reads the value. Partner: observe().
template <class T>
void publish(std::atomic<T>& word, T value) {
  word.store(value, std::memory_order_release);
}

/// What was written before the value was published may be read after it. Partner: publish().
template <class T>
T observe(const std::atomic<T>& word) {
  return word.load(std::memory_order_acquire);
}

/// A word read as a hint, or that only this thread writes: nothing is ordered by it. No partner.
template <class T>
T glance(const std::atomic<T>& word) {
  return word.load(std::memory_order_relaxed);
}

/// A word that the peer reads as a hint. Partner: glance().
template <class T>
void note(std::atomic<T>& word, T value) {
  word.store(value, std::memory_order_relaxed);
}

/// What was copied out of memory that the peer can write stays as it was copied: the compiler may not read it a second time. No partner.
inline void keepCopy() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Sleeper: says that it is about to sleep, and why, before it looks at the data once more. A full fence. Partner: sleepReason().
inline void announceSleep(std::atomic<std::uint32_t>& flag, std::uint32_t reason) { flag.exchange(reason, std::memory_order_seq_cst); }

/// Sleeper: is awake. Partner: none; a wake-up that crosses it is harmless.
inline void retractSleep(std::atomic<std::uint32_t>& flag) { flag.store(0, std::memory_order_relaxed); }

/// Publisher, after publish(): why the peer sleeps, 0 when it is awake. Orders the compiler only, so the processor may read the flag
/// while the published value still waits in the store buffer. Partner: announceSleep(), whose caller stays awake until every store
/// buffer has drained, and sleeps for a limited time first.
inline std::uint32_t sleepReason(const std::atomic<std::uint32_t>& flag) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return flag.load(std::memory_order_relaxed);
}

/// Waker: takes the sleeper's announcement away, so that a sleeper not yet in the kernel does not fall asleep. Partner: announceSleep().
inline void cancelSleep(std::atomic<std::uint32_t>& flag) { flag.exchange(0, std::memory_order_seq_cst); }

/// Sets an end that another thread must notice before it sleeps. A full fence, before cancelSleep(). Partner: ended().
inline void end(std::atomic<bool>& word) { word.exchange(true, std::memory_order_seq_cst); }

/// Partner: end(). Looked at after announceSleep() too.
inline bool ended(const std::atomic<bool>& word) { return word.load(std::memory_order_acquire); }

/// Sets a word that is 0, else leaves it. Partner: take().
inline void setFirst(std::atomic<std::int32_t>& word, std::int32_t value) {
  std::int32_t none = 0;
  word.compare_exchange_strong(none, value, std::memory_order_release, std::memory_order_relaxed);
}

/// Takes what setFirst() left; the common case is a plain load of a line that nobody writes. Partner: setFirst().
inline std::int32_t take(std::atomic<std::int32_t>& word) {
  if (glance(word) == 0) return 0;
  return word.exchange(0, std::memory_order_acquire);
}

/// Moves a counter from `from` to `from + 1`; false when it is elsewhere. A full fence. Partner: observe() by the next in turn, and
/// joinSleepers(): either this sees the sleeper, or the sleeper sees the new value.
inline bool advance(std::atomic<std::uint64_t>& word, std::uint64_t from) {
  return word.compare_exchange_strong(from, from + 1, std::memory_order_seq_cst, std::memory_order_relaxed);
}

/// Sleeper: counts itself, then looks at the counter again. A full fence. Partner: advance() followed by sleepers().
inline void joinSleepers(std::atomic<std::uint32_t>& count) { count.fetch_add(1, std::memory_order_seq_cst); }
inline void leaveSleepers(std::atomic<std::uint32_t>& count) { count.fetch_sub(1, std::memory_order_relaxed); }

/// Partner: joinSleepers().
inline std::uint32_t sleepers(const std::atomic<std::uint32_t>& count) { return count.load(std::memory_order_seq_cst); }

/// Moves a futex word on before its sleepers are woken. Partner: observe() of the word before joinSleepers().
inline void moveOn(std::atomic<std::uint32_t>& word) { word.fetch_add(1, std::memory_order_release); }

}  // namespace wire::barrier
