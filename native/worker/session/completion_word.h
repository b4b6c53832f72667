// A word of host memory that the GPU writes when a stream has finished its work. It is seen 0.4 us
// before cuStreamSynchronize returns (H200, driver 580). That offsets the round trip between
// client and worker, so launch plus synchronize takes as long as natively.
#pragma once

#include <atomic>
#include <cstdint>

#include "cuda_abi.h"
#include "driver.h"
#include "native/worker/session/registration.h"
#include "wire/channel.h"

namespace worker {

/// Belongs to one thread of the worker.
class CompletionWord {
 public:
  explicit CompletionWord(const Driver& driver) : driver_(driver) {}
  ~CompletionWord();
  CompletionWord(const CompletionWord&) = delete;
  CompletionWord& operator=(const CompletionWord&) = delete;

  /// Enqueues the write behind all work of the stream; false if the driver refuses.
  /// `contextsEnded`: registration.h.
  bool follow(CUstream stream, unsigned contextsEnded);
  /// The same with a word of registered memory that the client waits for, too. It can also write
  /// it, so await() then proves nothing.
  bool follow(CUstream stream, const wire::WorkerChannel::EndOfWait& end);

  /// Spins on the word for a limited time; false if the GPU has not written it by then.
  bool await() const;

 private:
  using Word = std::atomic<std::uint64_t>;
  bool enqueue(CUstream stream, Word* word, std::uint64_t value);
  bool prepare(unsigned contextsEnded);

  const Driver& driver_;
  Registration registration_{driver_};
  Word* word_ = nullptr;  ///< a page of its own
  std::uint64_t value_ = 0;
  const Word* awaited_ = nullptr;
  std::uint64_t awaitedValue_ = 0;
};

}  // namespace worker
