#include "native/worker/session/readers.h"

#include <unistd.h>

#include <algorithm>

#include "wire/wait.h"

namespace worker {

namespace {

/// A full ring of launches takes 40 ms of an idle processor. A frame that waits for the GPU may
/// take forever.
constexpr std::uint64_t kMostNanoseconds = 500'000'000;
constexpr useconds_t kPollMicroseconds = 500;
/// Most frames take less.
constexpr useconds_t kFrameMicroseconds = 50;

}  // namespace

Readers::Reader::Reader(Readers& readers, wire::WorkerChannel* channel)
    : readers_(readers), channel_(channel) {
  const std::lock_guard lock(readers_.mutex_);
  readers_.all_.push_back(this);
}

Readers::Reader::~Reader() {
  const std::lock_guard lock(readers_.mutex_);
  readers_.all_.remove(this);
}

/// The store of `executes_` must precede the load of `stopped_`, as in enter(): stop() has executed
/// its barrier before or after both.
void Readers::Reader::awaitContinuation(Stop least) {
  std::atomic<Stop>& stopped = readers_.stopped_;
  count(readers_.waiting_);
  do {
    executes_.store(Stop::none, std::memory_order_release);
    for (Stop now; (now = stopped.load(std::memory_order_acquire)) >= least;)
      stopped.wait(now, std::memory_order_acquire);
    executes_.store(least, std::memory_order_relaxed);
    readers_.barrier_.frequent();
  } while (stopped.load(std::memory_order_acquire) >= least);
  discount(readers_.waiting_);
}

/// A thread that waits for its turn executes nothing: the turn that it waits for may be that of a
/// stopped thread.
bool Readers::stop(Stop frames, std::uint64_t deadline) {
  stopped_.store(frames, std::memory_order_seq_cst);
  barrier_.rare();
  while (!executeNone(frames)) {
    if (wire::monotonicNanoseconds() >= deadline) return proceed(), false;
    usleep(kFrameMicroseconds);
  }
  return true;
}

bool Readers::executeNone(Stop frames) {
  const std::lock_guard lock(mutex_);
  return std::ranges::none_of(all_, [frames](const Reader* reader) {
    const Stop least = reader->executes_.load(std::memory_order_acquire);
    return least != Stop::none && least <= frames;
  });
}

void Readers::proceed() {
  stopped_.store(Stop::none, std::memory_order_release);
  stopped_.notify_all();
}

bool Readers::areDrained() {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(all_, [](const Reader* reader) {
    return reader->answers_.load(std::memory_order_relaxed) && !reader->channel_->hasMore();
  });
}

void Readers::drain() {
  {
    const std::lock_guard lock(mutex_);
    for (Reader* reader : all_) reader->channel_->drain();
  }
  const std::uint64_t deadline = wire::monotonicNanoseconds() + kMostNanoseconds;
  while (stopped_.load() == Stop::none && !areDrained() && wire::monotonicNanoseconds() < deadline)
    usleep(kPollMicroseconds);
}

}  // namespace worker
