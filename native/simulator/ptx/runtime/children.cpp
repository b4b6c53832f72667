#include "native/simulator/ptx/runtime/children.h"

#include <utility>

#include "native/simulator/ptx/machine/thread_pool.h"

namespace simulator::ptx {

void Children::add(const StreamKey& key, Work work) {
  const std::lock_guard lock(mutex_);
  const auto stream = streams_.try_emplace(key).first;
  stream->second.queue.push_back(std::move(work));
  if (std::exchange(stream->second.scheduled, true)) return;
  ready_.push_back(stream);
  changed_.notify_one();
}

void Children::addTail(Work work) {
  const std::lock_guard lock(mutex_);
  tails_.push_back(std::move(work));
}

/// Takes a stream whose first piece of work may begin. Streams that wait for an event are put
/// aside.
bool Children::take(Streams::iterator& stream) {
  while (!ready_.empty()) {
    stream = ready_.front();
    ready_.pop_front();
    const Mark& after = stream->second.queue.front().after;
    if (!after || *after) return true;
    waiting_.push_back(stream);
  }
  return false;
}

void Children::execute(Streams::iterator stream, std::unique_lock<std::mutex>& lock) {
  Work work = std::move(stream->second.queue.front());
  stream->second.queue.pop_front();
  ++running_;
  lock.unlock();
  if (work.run && !family_.stopped()) work.run();
  lock.lock();
  --running_;
  if (work.done) {
    *work.done = true;
    ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  if (stream->second.queue.empty()) {
    streams_.erase(stream);
  } else {
    ready_.push_back(stream);
  }
  changed_.notify_all();
}

bool Children::runOne() {
  std::unique_lock lock(mutex_);
  Streams::iterator stream;
  if (!take(stream)) return false;
  execute(stream, lock);
  return true;
}

/// Every wait is for an earlier record, so something is ready or runs until all work has ended.
void Children::drain() {
  std::unique_lock lock(mutex_);
  while (!family_.stopped()) {
    Streams::iterator stream;
    if (take(stream)) {
      execute(stream, lock);
    } else if (running_ == 0) {
      return;
    } else {
      changed_.wait(lock);
    }
  }
}

void Children::finish() {
  for (;;) {
    std::size_t streams = 0;
    {
      const std::lock_guard lock(mutex_);
      streams = ready_.size();
    }
    const bool alone = streams < 2 || family_.serial;
    ThreadPool::shared().run(alone ? 0 : static_cast<unsigned>(streams - 1), [this] { drain(); });
    const std::lock_guard lock(mutex_);
    if (tails_.empty() || family_.stopped()) return;
    const auto stream = streams_.try_emplace(StreamKey{}).first;
    stream->second = {{std::move(tails_.front())}, true};
    tails_.pop_front();
    ready_.push_back(stream);
  }
}

std::uint64_t Children::newStream() {
  const std::lock_guard lock(mutex_);
  return *handles_.insert(family_.handles++).first;
}

bool Children::hasStream(std::uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  return handles_.contains(handle);
}

bool Children::removeStream(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  return handles_.erase(handle) != 0;
}

std::uint64_t Children::newEvent() {
  const std::lock_guard lock(mutex_);
  return events_.try_emplace(family_.handles++).first->first;
}

std::optional<Mark> Children::event(std::uint64_t handle) const {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(handle);
  return found == events_.end() ? std::nullopt : std::optional(found->second);
}

bool Children::record(std::uint64_t handle, Mark mark) {
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(handle);
  if (found == events_.end()) return false;
  found->second = std::move(mark);
  return true;
}

bool Children::removeEvent(std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  return events_.erase(handle) != 0;
}

}  // namespace simulator::ptx
