#include "native/simulator/ptx/machine/thread_pool.h"

#include <algorithm>
#include <cstdlib>

namespace simulator::ptx {
namespace {

unsigned threadsAllowed() {
  const unsigned all = std::max(1u, std::thread::hardware_concurrency());
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATOR_THREADS");
  const long limit = text ? std::strtol(text, nullptr, 10) : 0;
  return limit > 0 ? static_cast<unsigned>(std::min<long>(limit, 1024)) : all;
}

}  // namespace

ThreadPool& ThreadPool::shared() {
  static auto* const pool = new ThreadPool;
  return *pool;
}

ThreadPool::ThreadPool() : size_(threadsAllowed()) {
  for (unsigned i = 1; i < size_; ++i) std::thread([this] { serve(); }).detach();
}

void ThreadPool::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto job =
        std::find_if(jobs_.begin(), jobs_.end(), [](const Job& j) { return j.wanted > 0; });
    if (job == jobs_.end()) {
      offered_.wait(lock);
      continue;
    }
    --job->wanted;
    ++job->running;
    lock.unlock();
    (*job->work)();
    lock.lock();
    if (--job->running == 0) finished_.notify_all();
  }
}

void ThreadPool::run(unsigned helpers, const std::function<void()>& work) {
  helpers = std::min(helpers, size_ - 1);
  if (helpers == 0) return work();
  std::unique_lock lock(mutex_);
  const auto job = jobs_.insert(jobs_.end(), Job{&work, helpers});
  lock.unlock();
  if (helpers == 1) {
    offered_.notify_one();
  } else {
    offered_.notify_all();
  }
  work();
  lock.lock();
  job->wanted = 0;
  finished_.wait(lock, [&] { return job->running == 0; });
  jobs_.erase(job);
}

}  // namespace simulator::ptx
