// An event: the last recorded position in a stream. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "cuda_abi.h"
#include "native/simulator/completion.h"

namespace simulator {

struct Context;

struct Event {
  Event(Context& context_, unsigned flags_) : context(context_), flags(flags_) {}

  Context& context;
  const unsigned flags;

  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }
  /// Null before the first record().
  std::shared_ptr<const Completion> recording() const {
    const std::lock_guard lock(mutex_);
    return recording_;
  }
  void record(std::shared_ptr<const Completion> completion) {
    const std::lock_guard lock(mutex_);
    recording_ = std::move(completion);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Completion> recording_;
};

}  // namespace simulator
