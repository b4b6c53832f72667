// A word of host memory that the GPU writes when a stream has finished its work. The worker sees it
// 0.4 us before cuStreamSynchronize returns (H200, driver 580). That offsets the round trip between
// client and worker, so launch plus synchronize takes as long as natively.
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

  /// Enqueues the write behind all work of the stream; false if the driver refuses. `contextsEnded`
  /// counts ended contexts of the session: a registration ends with its context.
  bool follow(CUstream stream, unsigned contextsEnded);

  /// Spins on the word for a limited time; false if the GPU has not written it by then.
  bool await() const;

 private:
  using Word = std::atomic<std::uint32_t>;
  bool prepare(unsigned contextsEnded);

  const Driver& driver_;
  Word* word_ = nullptr;  ///< a page of its own, registered with the driver for all contexts
  std::uint32_t value_ = 0;
  unsigned contextsEnded_ = 0;
  bool refused_ = false;  ///< the driver refused once: do not ask again
};

}  // namespace worker
