// An event: the last recorded position in a stream, or in a capture. Thread-safe.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "cuda_abi.h"
#include "native/simulator/completion.h"
#include "native/simulator/shared_event.h"

namespace simulator {

struct Context;
struct StreamCapture;

struct Event {
  Event(Context& context_, unsigned flags_, std::shared_ptr<SharedEvent> shared_ = nullptr)
      : context(context_), flags(flags_), shared(std::move(shared_)) {}

  Context& context;
  const unsigned flags;
  const std::shared_ptr<SharedEvent> shared;  ///< of an event for several processes; else null

  bool timed() const { return (flags & CU_EVENT_DISABLE_TIMING) == 0; }
  /// Null before the first record(). Only of this process: a shared event has a state of its own.
  std::shared_ptr<const Completion> recording() const {
    const std::lock_guard lock(mutex_);
    return recording_;
  }
  void record(std::shared_ptr<const Completion> completion) {
    const std::lock_guard lock(mutex_);
    recording_ = std::move(completion);
    captured_ = nullptr;
  }
  /// The position in a capture; null if the last record() was an ordinary one.
  std::shared_ptr<const StreamCapture> captured() const {
    const std::lock_guard lock(mutex_);
    return captured_;
  }
  void recordCaptured(std::shared_ptr<const StreamCapture> position) {
    const std::lock_guard lock(mutex_);
    recording_ = nullptr;
    captured_ = std::move(position);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Completion> recording_;
  std::shared_ptr<const StreamCapture> captured_;
};

}  // namespace simulator
