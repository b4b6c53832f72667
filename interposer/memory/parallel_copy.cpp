#include "interposer/memory/parallel_copy.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "interposer/session/callback.h"

namespace interposer {

namespace {

constexpr std::size_t kPiece = std::size_t{512} << 10;
constexpr unsigned kMaxHelpers = 3;

/// One copy, divided into pieces that idle threads take.
struct Job {
  char* destination;
  const char* source;
  std::size_t bytes;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> done{0};
  unsigned helpers = 0;  ///< helpers inside work(); guarded by the pool's mutex

  void work() {
    for (std::size_t at; (at = next.fetch_add(kPiece)) < bytes;) {
      const std::size_t piece = std::min(kPiece, bytes - at);
      std::memcpy(destination + at, source + at, piece);
      done.fetch_add(piece, std::memory_order_release);
    }
  }
};

class Pool {
 public:
  static Pool& instance() {
    static Pool* const pool = new Pool;
    return *pool;
  }

  unsigned helpers() const { return helpers_; }

  void copy(Job& job) {
    {
      const std::lock_guard lock(mutex_);
      start();
      jobs_.push_back(&job);
    }
    arrived_.notify_all();
    job.work();
    std::unique_lock lock(mutex_);
    std::erase(jobs_, &job);
    // Then every piece is done, and no helper uses the job.
    left_.wait(lock, [&] { return job.helpers == 0; });
  }

 private:
  Pool() {
    cpu_set_t cpus;
    const int cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    helpers_ = std::min<unsigned>(kMaxHelpers, cores > 2 ? cores - 1 : 0);
  }

  void start() {
    for (; started_ < helpers_; ++started_)
      startThread([](void* pool) -> void* { return static_cast<Pool*>(pool)->help(), nullptr; },
                  this);
  }

  void help() {
    std::unique_lock lock(mutex_);
    for (;;) {
      arrived_.wait(lock, [&] { return !jobs_.empty(); });
      Job& job = *jobs_.front();
      ++job.helpers;
      lock.unlock();
      job.work();
      lock.lock();
      if (!jobs_.empty() && jobs_.front() == &job)
        jobs_.pop_front();  // nothing is left of it to take
      --job.helpers;
      left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable left_;
  std::deque<Job*> jobs_;
  unsigned helpers_ = 0;
  unsigned started_ = 0;
};

}  // namespace

void parallelCopy(void* destination, const void* source, std::size_t bytes) {
  if (bytes < kSharedCopyBytes || Pool::instance().helpers() == 0) {
    std::memcpy(destination, source, bytes);
    return;
  }
  Job job{static_cast<char*>(destination), static_cast<const char*>(source), bytes};
  Pool::instance().copy(job);
}

}  // namespace interposer
