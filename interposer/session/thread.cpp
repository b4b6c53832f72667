#include "interposer/session/thread.h"

#include <pthread.h>

#include <atomic>

#include "interposer/session/session.h"

namespace interposer {

namespace {

/// One pointer in static TLS: the fastest thread-local storage, and small enough for dlopen.
__attribute__((tls_model("initial-exec"))) thread_local Thread* currentThread = nullptr;

/// The worker's thread ends with ours.
void end(void* argument) {
  auto* thread = static_cast<Thread*>(argument);
  currentThread = nullptr;
  if (thread->channel != nullptr && thread->session == Session::current())
    thread->session->forget(thread->channel.get());
  delete thread;  // the channel's end is what the worker's thread sees
}

pthread_key_t endKey() {
  static const pthread_key_t key = [] {
    pthread_key_t created;
    pthread_key_create(&created, end);
    return created;
  }();
  return key;
}

}  // namespace

Thread& Thread::current() {
  if (currentThread == nullptr) [[unlikely]] {
    static std::atomic<std::uint64_t> threads{0};
    currentThread = new Thread{.number = ++threads};
    pthread_setspecific(endKey(), currentThread);
  }
  return *currentThread;
}

wire::ClientChannel* Thread::openChannel(Session& owner) {
  if (channel == nullptr) [[unlikely]] {
    channel = owner.openChannel();
    session = &owner;
  }
  return channel.get();
}

}  // namespace interposer
