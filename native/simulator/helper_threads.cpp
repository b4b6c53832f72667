#include "native/simulator/helper_threads.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace simulator {
namespace {

constexpr unsigned kMost = 32;

struct Helpers {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  unsigned threads = 0;
  unsigned idle = 0;
};

/// Never destroyed, because its threads may outlive static destructors.
Helpers& helpers() {
  static Helpers& instance = *new Helpers;
  return instance;
}

void help() {
  Helpers& mine = helpers();
  std::unique_lock lock(mine.mutex);
  for (;;) {
    ++mine.idle;
    mine.changed.wait(lock, [&] { return !mine.tasks.empty(); });
    --mine.idle;
    auto task = std::move(mine.tasks.front());
    mine.tasks.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace

void runOnHelperThread(std::function<void()> task) {
  Helpers& mine = helpers();
  const std::lock_guard lock(mine.mutex);
  mine.tasks.push_back(std::move(task));
  if (mine.tasks.size() > mine.idle && mine.threads < kMost) {
    try {
      std::thread(help).detach();
      ++mine.threads;
    } catch (const std::system_error&) {
      // The task waits for another helper; a graph's own thread does its branches meanwhile.
    }
  }
  mine.changed.notify_one();
}

}  // namespace simulator
