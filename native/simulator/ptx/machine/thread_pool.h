// The host threads that all launches of the process share.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

namespace simulator::ptx {

class ThreadPool {
 public:
  /// Made on first use and never destroyed: its threads may be in a kernel that does not end when
  /// the process exits.
  static ThreadPool& shared();
  unsigned size() const { return size_; }
  /// Runs `work` on the calling thread and, as they become free, on at most `helpers` more; returns
  /// when all that began have returned.
  void run(unsigned helpers, const std::function<void()>& work);

 private:
  struct Job {
    const std::function<void()>* work;
    unsigned wanted;
    unsigned running = 0;
  };
  ThreadPool();
  void serve();

  std::mutex mutex_;
  std::condition_variable offered_, finished_;
  std::list<Job> jobs_;
  unsigned size_;
};

}  // namespace simulator::ptx
