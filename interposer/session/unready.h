// The last query of one thread that found work under way, so that a program that polls does not ask
// the worker each time.
#pragma once

#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

class Unready {
 public:
  /// Time in ns for which the answer is repeated, though it may have become wrong. A question to
  /// the worker takes as long.
  static constexpr std::uint64_t kRepeatNanoseconds = 1'500;

  /// The driver answered CUDA_ERROR_NOT_READY for the event or stream in the context. `changes`:
  /// value of Session::changes() before the question. `now`: monotonic time in ns.
  void note(CUcontext context, std::uint64_t object, std::uint64_t changes, std::uint64_t now) {
    context_ = context, object_ = object, changes_ = changes, until_ = now + kRepeatNanoseconds;
  }
  /// Another query has been answered: the thread may know now that this work has ended, too.
  void forget() { until_ = 0; }
  /// Whether the answer may be repeated.
  bool holds(CUcontext context, std::uint64_t object, std::uint64_t changes,
             std::uint64_t now) const {
    return now < until_ && object_ == object && context_ == context && changes_ == changes;
  }

 private:
  CUcontext context_ = nullptr;
  std::uint64_t object_ = 0;
  std::uint64_t changes_ = 0;
  std::uint64_t until_ = 0;
};

}  // namespace interposer
