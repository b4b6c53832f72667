// How C++ tests wait: for a condition, never for a time.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace unit {

/// Waits for the condition, longer than any machine needs. Returns whether it holds.
template <class Condition>
bool comesTrue(Condition condition) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + std::chrono::seconds(60); Clock::now() < end; usleep(500)) {
    if (condition()) return true;
  }
  return condition();
}

inline pid_t threadId() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// Whether the thread of this process sleeps in the kernel, or has ended.
inline bool isAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return true;
  const auto name = line.rfind(')');  // of the thread: it may contain anything
  return name == std::string::npos || line.substr(name + 2, 1) == "S";
}

/// A thread for which a test waits until it sleeps, or has ended. The destructor joins it.
class Waiter {
 public:
  template <class Body>
  explicit Waiter(Body body)
      : thread_([this, body] {
          id_ = threadId();
          body();
          ended_ = true;
        }) {}
  ~Waiter() { join(); }
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;

  void join() {
    if (thread_.joinable()) thread_.join();
  }
  bool ended() const { return ended_; }
  /// The thread waits for something: true once it sleeps, false if its body ends first.
  bool waits() const {
    return comesTrue([&] { return ended_ || (id_ != 0 && isAsleep(id_)); }) && !ended_;
  }

 private:
  std::atomic<pid_t> id_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

}  // namespace unit
