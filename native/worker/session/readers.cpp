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

bool Readers::areDrained() {
  const std::lock_guard lock(mutex_);
  return std::ranges::all_of(
      all_, [](const Reader* reader) { return reader->answers_.load(std::memory_order_relaxed); });
}

void Readers::drain() {
  {
    const std::lock_guard lock(mutex_);
    for (Reader* reader : all_) reader->channel_->drain();
  }
  const std::uint64_t deadline = wire::monotonicNanoseconds() + kMostNanoseconds;
  while (!areDrained() && wire::monotonicNanoseconds() < deadline) usleep(kPollMicroseconds);
}

}  // namespace worker
