// Chunks of pinned memory through which copies with pageable memory go.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>

#include "cuda_abi.h"

namespace interposer {

inline constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
inline constexpr std::size_t kChunks = 8;

struct Chunk {
  std::byte* memory = nullptr;
  CUevent done = nullptr;  ///< recorded behind the copy that uses the chunk
};

/// The chunks of one context.
class Staging {
 public:
  /// The current context's; made at its first large pageable copy. Null with `status` set when
  /// there is no memory for it.
  static std::shared_ptr<Staging> ofContext(CUresult& status);

  Staging() = default;
  /// Also when its context is gone, and the events with it.
  ~Staging();
  Staging(const Staging&) = delete;

  /// A free chunk, or the oldest one in flight, for whose copy it waits. False if other threads
  /// hold all chunks.
  bool tryTake(Chunk& chunk, CUresult& status);
  /// The same, waiting for other threads too. Only for a thread that holds no chunk.
  CUresult take(Chunk& chunk);
  /// The chunk's copy has been submitted to `stream`.
  CUresult submit(const Chunk& chunk, CUstream stream);
  /// Gives back a chunk whose copy is done or was never submitted.
  void release(const Chunk& chunk);

 private:
  CUresult open();

  void* memory_ = nullptr;
  std::mutex mutex_;
  std::condition_variable released_;
  std::deque<Chunk> free_;
  std::deque<Chunk> inFlight_;
};

/// The size of the next piece of `left` items. The remainder must not become a small copy, which
/// would wait for a window of GPU time.
std::size_t nextOf(std::size_t left, std::size_t atOnce, std::size_t bytesOfEach);

/// Forgets the chunks of a context that has ended. The returned object owns their memory, and calls
/// the worker when it is released: release it when no lock is held.
std::shared_ptr<void> closeStaging(CUcontext context);

}  // namespace interposer
