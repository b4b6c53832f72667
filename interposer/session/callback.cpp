#include "interposer/session/callback.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "cuda_abi.h"

namespace interposer {

namespace {

__attribute__((tls_model("initial-exec"))) thread_local bool runsCallbacks = false;

struct Queue {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<std::function<void()>> pending;
  bool running = false;
};

Queue& queue() {
  static Queue* const instance = new Queue;  // outlives exit handlers
  return *instance;
}

void* runQueue(void*) {
  runsCallbacks = true;
  for (;;) {
    std::unique_lock lock(queue().mutex);
    queue().arrived.wait(lock, [] { return !queue().pending.empty(); });
    const auto next = std::move(queue().pending.front());
    queue().pending.pop_front();
    lock.unlock();
    next();
  }
}

}  // namespace

bool insideCallback() { return runsCallbacks; }

void asCallback(const std::function<void()>& run) {
  const bool before = std::exchange(runsCallbacks, true);
  run();
  runsCallbacks = before;
}

void enqueueCallback(std::function<void()> run) {
  const std::lock_guard lock(queue().mutex);
  queue().pending.push_back(std::move(run));
  if (!queue().running) queue().running = startThread(runQueue, nullptr);
  queue().arrived.notify_one();
}

void callProgram(const wire::Callback& callback) {
  if (callback.kind == wire::CallbackKind::hostFunction) {
    reinterpret_cast<CUhostFn>(callback.function)(reinterpret_cast<void*>(callback.userData));
  } else {
    reinterpret_cast<CUstreamCallback>(callback.function)(
        reinterpret_cast<CUstream>(callback.stream), static_cast<CUresult>(callback.status),
        reinterpret_cast<void*>(callback.userData));
  }
}

bool startThread(void* (*body)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  const bool started = pthread_create(&thread, nullptr, body, argument) == 0;
  if (started) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace interposer
