// A word of host memory that the GPU writes when a stream has come so far. It is seen some 0.4 us before cuStreamSynchronize would return
// (H200, driver 580): about what two journeys between processors cost, so that a launch and the synchronize behind it take no longer
// through the worker than natively.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda_abi.h"
#include "driver.h"

namespace worker {

/// Belongs to one thread of the worker.
class CompletionWord {
 public:
  explicit CompletionWord(const Driver& driver) : driver_(driver) {}
  ~CompletionWord();
  CompletionWord(const CompletionWord&) = delete;
  CompletionWord& operator=(const CompletionWord&) = delete;

  /// Has the GPU write the word behind all work of the stream; false when that is not to be had. `contextsEnded` counts the contexts of the
  /// session that have ended: with one goes what was registered in it.
  bool follow(CUstream stream, unsigned contextsEnded);

  /// Looks at the word for as long as spinning is worth while; false when the GPU has not written it by then.
  bool await() const;

 private:
  using Word = std::atomic<std::uint32_t>;
  bool prepare(unsigned contextsEnded);

  const Driver& driver_;
  Word* word_ = nullptr;  ///< a page of its own, registered with the driver for all contexts
  std::uint32_t value_ = 0;
  unsigned contextsEnded_ = 0;
  bool refused_ = false;  ///< asked once, it was not to be had: not asked again
};

}  // namespace worker
