#include "wire/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace wire {

namespace {

constexpr std::uint64_t kNanosecondsPerSecond = 1'000'000'000;

// Without FUTEX_PRIVATE_FLAG: the channel's words are shared between processes.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) {
  static_assert(sizeof(word) == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

std::uint32_t noteProcessor(Seat& mine) {
  const auto processor = static_cast<std::uint32_t>(sched_getcpu() + 1);
  if (barrier::glance(mine.processor) != processor) barrier::note(mine.processor, processor);
  return processor;
}

bool sharesProcessor(Seat& mine, const Seat& peer) {
  const std::uint32_t processor = noteProcessor(mine);
  return processor != 0 && barrier::glance(peer.processor) == processor;
}

bool hasProcessorsForSpinning() {
  constexpr int kEnough = 4;
  static const bool enough = [] {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) >= kEnough;
  }();
  return enough;
}

std::uint64_t replySpinNanoseconds() {
  return hasProcessorsForSpinning() ? 20'000'000 : kSpinNanoseconds;
}

std::uint64_t monotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kNanosecondsPerSecond +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void futexWait(std::atomic<std::uint32_t>& word, std::uint32_t value, std::uint64_t nanoseconds) {
  const timespec timeout{static_cast<time_t>(nanoseconds / kNanosecondsPerSecond),
                         static_cast<long>(nanoseconds % kNanosecondsPerSecond)};
  futex(word, FUTEX_WAIT, value, &timeout);
}

void futexWakeAll(std::atomic<std::uint32_t>& word) { futex(word, FUTEX_WAKE, INT_MAX, nullptr); }

void wake(std::atomic<std::uint32_t>& flag) {
  barrier::cancelSleep(flag);
  futexWakeAll(flag);
}

}  // namespace wire
