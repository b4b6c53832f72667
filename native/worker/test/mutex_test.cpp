// The worker's pthread_mutex_lock keeps what POSIX says of each kind of mutex.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <pthread.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "test/unit/waiting.h"

namespace {

struct Mutex {
  explicit Mutex(int kind, int robust = PTHREAD_MUTEX_STALLED) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutex_init(&mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  int lock() { return pthread_mutex_lock(&mutex); }
  int unlock() { return pthread_mutex_unlock(&mutex); }

  pthread_mutex_t mutex;
};

TEST_CASE("a library finds it before the C library's") {
  CHECK(dlsym(RTLD_DEFAULT, "pthread_mutex_lock") != dlsym(RTLD_NEXT, "pthread_mutex_lock"));
}

TEST_CASE("one thread at a time holds a mutex") {
  for (const int kind : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    Mutex mutex(kind);
    constexpr int threads = 4, rounds = 20'000;
    int count = 0;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
      all.emplace_back([&] {
        for (int round = 0; round < rounds; ++round) {
          mutex.lock();
          ++count;
          mutex.unlock();
        }
      });
    for (std::thread& one : all) one.join();
    CHECK(count == threads * rounds);
  }
}

TEST_CASE("a thread sleeps if a mutex stays held") {
  Mutex mutex(PTHREAD_MUTEX_NORMAL);
  mutex.lock();
  unit::Waiter other([&] {
    CHECK(mutex.lock() == 0);
    mutex.unlock();
  });
  CHECK(other.waits());
  mutex.unlock();
}

TEST_CASE("the thread that holds a mutex may lock it again if its kind allows that") {
  Mutex recursive(PTHREAD_MUTEX_RECURSIVE), checking(PTHREAD_MUTEX_ERRORCHECK);
  CHECK(recursive.lock() == 0);
  CHECK(recursive.lock() == 0);
  CHECK(recursive.unlock() == 0);
  CHECK(recursive.unlock() == 0);
  CHECK(checking.lock() == 0);
  CHECK(checking.lock() == EDEADLK);
  CHECK(checking.unlock() == 0);
}

TEST_CASE("the mutex of a thread that has ended is locked, and says so") {
  Mutex mutex(PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_ROBUST);
  std::thread([&] { mutex.lock(); }).join();
  CHECK(mutex.lock() == EOWNERDEAD);
  CHECK(mutex.unlock() == 0);
  CHECK(mutex.lock() == ENOTRECOVERABLE);
}

}  // namespace
