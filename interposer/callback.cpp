#include "interposer/callback.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

#include "cuda_abi.h"
#include "interposer/session.h"
#include "wire/callback.h"

namespace interposer {

namespace {

__attribute__((tls_model("initial-exec"))) thread_local bool runsCallbacks = false;

struct Pending {
  std::uint64_t id;
  wire::Callback callback;
};

struct Queue {
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<Pending> pending;
  bool running = false;
};

Queue& queue() {
  static Queue* const instance = new Queue;  // outlives exit handlers
  return *instance;
}

void run(const wire::Callback& callback) {
  if (callback.kind == wire::CallbackKind::hostFunction) {
    reinterpret_cast<CUhostFn>(callback.function)(reinterpret_cast<void*>(callback.userData));
  } else {
    reinterpret_cast<CUstreamCallback>(callback.function)(
        reinterpret_cast<CUstream>(callback.stream), static_cast<CUresult>(callback.status), reinterpret_cast<void*>(callback.userData));
  }
}

void* runCallbacks(void* argument) {
  auto& session = *static_cast<Session*>(argument);
  runsCallbacks = true;
  for (;;) {
    std::unique_lock lock(queue().mutex);
    queue().arrived.wait(lock, [] { return !queue().pending.empty(); });
    const Pending next = queue().pending.front();
    queue().pending.pop_front();
    lock.unlock();
    session.awaitText(next.callback.text);
    run(next.callback);
    session.send(wire::MessageKind::callbackDone, next.id, {});
  }
}

}  // namespace

bool insideCallback() { return runsCallbacks; }

void enqueueCallback(Session& session, const wire::Message& message) {
  Pending pending{message.header.id, {}};
  if (message.payload.size() != sizeof pending.callback) return;
  std::memcpy(&pending.callback, message.payload.data(), sizeof pending.callback);
  const std::lock_guard lock(queue().mutex);
  queue().pending.push_back(pending);
  if (!queue().running) startThread(runCallbacks, &session);
  queue().running = true;
  queue().arrived.notify_one();
}

void startThread(void* (*body)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, body, argument) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace interposer
