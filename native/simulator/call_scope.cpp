#include "native/simulator/call_scope.h"

#include <atomic>
#include <condition_variable>
#include <mutex>

namespace simulator {
namespace {

struct Calls {
  std::atomic<unsigned> running{0};
  std::atomic<bool> held{false};
  std::mutex mutex;
  std::condition_variable released;
};

/// Never destroyed: threads may wait in it until the process exits.
Calls& calls() {
  static auto& all = *new Calls;
  return all;
}

thread_local unsigned depth = 0;

}  // namespace

CallScope::CallScope() {
  if (depth++ > 0) return;
  Calls& all = calls();
  while (all.running.fetch_add(1), all.held.load()) {
    all.running.fetch_sub(1);
    std::unique_lock lock(all.mutex);
    all.released.wait(lock, [&] { return !all.held.load(); });
  }
}

CallScope::~CallScope() {
  if (--depth == 0) calls().running.fetch_sub(1);
}

void holdCalls() { calls().held = true; }

void releaseCalls() {
  Calls& all = calls();
  {
    const std::lock_guard lock(all.mutex);
    all.held = false;
  }
  all.released.notify_all();
}

bool callsRun() { return calls().running.load() != 0; }

}  // namespace simulator
