// All atomic operations on memory that two threads share, by name, each with its partner. The rest
// of wire/ uses no memory order.
//
// To wake a sleeper, one side must order a store (the data) before a load (the sleeping flag), and
// the other side the reverse. A fence on the publishing side would wait for the store buffer at
// every frame. So the publisher omits it if the sleeper makes the publishers' processors execute a
// barrier (membarrier(2), process_barrier.h). See announceSleep() and sleepReason().
#pragma once

#include <atomic>
#include <cstdint>

#include "wire/process_barrier.h"

namespace wire::barrier {

/// Publishes all earlier writes to threads that read the value. Partner: observe().
template <class T>
void publish(std::atomic<T>& word, T value) {
  word.store(value, std::memory_order_release);
}

/// After it, all writes before publish() are visible. Partner: publish().
template <class T>
T observe(const std::atomic<T>& word) {
  return word.load(std::memory_order_acquire);
}

/// Reads a word as a hint, or one that only this thread writes, without ordering. No partner.
template <class T>
T glance(const std::atomic<T>& word) {
  return word.load(std::memory_order_relaxed);
}

/// Writes a word that the peer reads as a hint. Partner: glance().
template <class T>
void note(std::atomic<T>& word, T value) {
  word.store(value, std::memory_order_relaxed);
}

/// Keeps the compiler from reading again what was copied out of memory that the peer can write. No
/// partner.
inline void keepCopy() { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// Sleeper: announces that it is about to sleep, and why, before it checks the data again. A full
/// fence. Partner: sleepReason().
inline void announceSleep(std::atomic<std::uint32_t>& flag, std::uint32_t reason) {
  flag.exchange(reason, std::memory_order_seq_cst);
}

/// Sleeper: announces that it is awake. No partner; a concurrent wake-up is harmless.
inline void retractSleep(std::atomic<std::uint32_t>& flag) {
  flag.store(0, std::memory_order_relaxed);
}

/// Publisher, after publish(): returns why the peer sleeps, or 0 if it is awake. `expedites`: the
/// peer promises a process barrier between announceSleep() and its last check of the data. Then
/// this orders only the compiler, if this process executes such barriers; else it is a full fence.
/// Partner: announceSleep(). A peer that writes a wrong word delays only its own wake-up.
inline std::uint32_t sleepReason(const std::atomic<std::uint32_t>& flag,
                                 const std::atomic<std::uint32_t>& expedites) {
  if (expedites.load(std::memory_order_relaxed) != 0 && isRegisteredForProcessBarriers()) [[likely]]
    std::atomic_signal_fence(std::memory_order_seq_cst);
  else
    fullFence();
  return flag.load(std::memory_order_relaxed);
}

/// Waker: clears the sleeper's announcement, so that a sleeper that is not yet in the kernel does
/// not fall asleep. Partner: announceSleep().
inline void cancelSleep(std::atomic<std::uint32_t>& flag) {
  flag.exchange(0, std::memory_order_seq_cst);
}

/// Sets an end that another thread must notice before it sleeps. A full fence, before
/// cancelSleep(). Partner: ended().
inline void end(std::atomic<bool>& word) { word.exchange(true, std::memory_order_seq_cst); }

/// Reads an end set by end(), its partner. Check it after announceSleep() too.
inline bool ended(const std::atomic<bool>& word) { return word.load(std::memory_order_acquire); }

/// Sets a word if it is 0. Partner: take().
inline void setFirst(std::atomic<std::int32_t>& word, std::int32_t value) {
  std::int32_t none = 0;
  word.compare_exchange_strong(none, value, std::memory_order_release, std::memory_order_relaxed);
}

/// Reads and clears the word of setFirst(). Fast if it is 0: a plain load of a line that is rarely
/// written. Partner: setFirst().
inline std::int32_t take(std::atomic<std::int32_t>& word) {
  if (glance(word) == 0) return 0;
  return word.exchange(0, std::memory_order_acquire);
}

/// Moves a counter from `from` to `to`; false if it has another value. A full fence. Partners:
/// observe() by the next in turn, and joinSleepers(): either this sees the sleeper, or the sleeper
/// sees the new value.
inline bool advance(std::atomic<std::uint64_t>& word, std::uint64_t from, std::uint64_t to) {
  return word.compare_exchange_strong(from, to, std::memory_order_seq_cst,
                                      std::memory_order_relaxed);
}

/// Adds to a counter that several threads move; returns the sum. A full fence. Partners: those of
/// advance().
inline std::uint64_t add(std::atomic<std::uint64_t>& word, std::uint64_t more) {
  return word.fetch_add(more, std::memory_order_seq_cst) + more;
}

/// Sleeper: counts itself, and then checks the counter again. A full fence. Partners: advance()
/// and add(), followed by sleepers().
inline void joinSleepers(std::atomic<std::uint32_t>& count) {
  count.fetch_add(1, std::memory_order_seq_cst);
}
inline void leaveSleepers(std::atomic<std::uint32_t>& count) {
  count.fetch_sub(1, std::memory_order_relaxed);
}

/// Partner: joinSleepers().
inline std::uint32_t sleepers(const std::atomic<std::uint32_t>& count) {
  return count.load(std::memory_order_seq_cst);
}

/// Changes a futex word before its sleepers are woken. Partner: observe() of the word before
/// joinSleepers().
inline void moveOn(std::atomic<std::uint32_t>& word) {
  word.fetch_add(1, std::memory_order_release);
}

}  // namespace wire::barrier
