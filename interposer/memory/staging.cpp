#include "interposer/memory/staging.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/parallel_copy.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"
#include "wire/copy.h"

namespace interposer {

namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kChunks = 8;

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
  ~Staging() {
    if (memory_ != nullptr) interposer::cuMemFreeHost(memory_);
  }
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

struct Stagings {
  std::mutex mutex;
  std::map<CUcontext, std::shared_ptr<Staging>> ofContext;
};

Stagings& stagings() {
  static Stagings* const instance = new Stagings;
  return *instance;
}

std::shared_ptr<Staging> Staging::ofContext(CUresult& status) {
  const std::lock_guard lock(stagings().mutex);
  auto& staging = stagings().ofContext[Thread::current().context()];
  status = CUDA_SUCCESS;
  if (staging != nullptr) return staging;
  auto opened = std::make_shared<Staging>();
  status = opened->open();
  return status == CUDA_SUCCESS ? staging = opened : nullptr;
}

CUresult Staging::open() {
  if (const CUresult status =
          interposer::cuMemHostAlloc(&memory_, kChunks * kChunkBytes, CU_MEMHOSTALLOC_PORTABLE);
      status != CUDA_SUCCESS)
    return status;
  for (std::size_t i = 0; i < kChunks; ++i) {
    Chunk chunk{static_cast<std::byte*>(memory_) + i * kChunkBytes, nullptr};
    if (const CUresult status = remote::cuEventCreate(&chunk.done, CU_EVENT_DISABLE_TIMING);
        status != CUDA_SUCCESS)
      return status;
    free_.push_back(chunk);
  }
  return CUDA_SUCCESS;
}

bool Staging::tryTake(Chunk& chunk, CUresult& status) {
  std::unique_lock lock(mutex_);
  if (free_.empty() && inFlight_.empty()) return false;
  const bool busy = free_.empty();
  auto& from = busy ? inFlight_ : free_;
  chunk = from.front();
  from.pop_front();
  lock.unlock();
  status = busy ? remote::cuEventSynchronize(chunk.done) : CUDA_SUCCESS;
  if (status != CUDA_SUCCESS) release(chunk);
  return true;
}

CUresult Staging::take(Chunk& chunk) {
  CUresult status = CUDA_SUCCESS;
  while (!tryTake(chunk, status)) {
    std::unique_lock lock(mutex_);
    released_.wait(lock, [&] { return !free_.empty() || !inFlight_.empty(); });
  }
  return status;
}

CUresult Staging::submit(const Chunk& chunk, CUstream stream) {
  const CUresult status = remote::cuEventRecord(chunk.done, stream);
  if (status != CUDA_SUCCESS) return release(chunk), status;
  const std::lock_guard lock(mutex_);
  inFlight_.push_back(chunk);
  released_.notify_one();
  return CUDA_SUCCESS;
}

void Staging::release(const Chunk& chunk) {
  const std::lock_guard lock(mutex_);
  free_.push_front(chunk);
  released_.notify_one();
}

/// The size of the next piece of `left` items. The remainder must not become a small copy, which
/// would wait for a window of GPU time.
std::size_t nextOf(std::size_t left, std::size_t atOnce, std::size_t bytesOfEach) {
  if (left <= atOnce) return left;
  return (left - atOnce) * bytesOfEach > wire::kSmallCopyBytes ? atOnce : left / 2;
}

std::size_t nextPiece(std::size_t left) { return nextOf(left, kChunkBytes, 1); }

CUresult wait(CUstream stream, bool synchronise) {
  return synchronise ? remote::cuStreamSynchronize(stream) : CUDA_SUCCESS;
}

}  // namespace

std::shared_ptr<void> closeStaging(CUcontext context) {
  const std::lock_guard lock(stagings().mutex);
  const auto found = stagings().ofContext.extract(context);
  return found ? found.mapped() : nullptr;
}

CUresult stageHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                   bool synchronise) {
  const RelaxedCapture relaxed;
  CUresult status = CUDA_SUCCESS;
  const auto staging = Staging::ofContext(status);
  if (staging == nullptr) return status;
  const Waiting waiting(!Session::current()->deviceRanges.contains(destination, bytes));
  for (std::size_t at = 0, piece = 0; at < bytes; at += piece) {
    piece = nextPiece(bytes - at);
    Chunk chunk;
    if (status = staging->take(chunk); status != CUDA_SUCCESS) return status;
    parallelCopy(chunk.memory, static_cast<const std::byte*>(source) + at, piece);
    if (status = copyPinnedHtoD(destination + at, chunk.memory, piece, stream, false);
        status != CUDA_SUCCESS)
      return staging->release(chunk), status;
    if (status = staging->submit(chunk, stream); status != CUDA_SUCCESS) return status;
  }
  return wait(stream, synchronise);
}

CUresult stageDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream) {
  const RelaxedCapture relaxed;
  CUresult status = CUDA_SUCCESS;
  const auto staging = Staging::ofContext(status);
  if (staging == nullptr) return status;
  struct Piece {
    Chunk chunk;
    std::size_t at;
    std::size_t bytes;
  };
  std::deque<Piece> pieces;
  constexpr std::size_t kAhead = 3;  // copies under way while one is written to the destination
  const Waiting waiting(!Session::current()->deviceRanges.contains(source, bytes));
  const auto finishOldest = [&] {
    const Piece piece = pieces.front();
    pieces.pop_front();
    if (status == CUDA_SUCCESS) status = remote::cuEventSynchronize(piece.chunk.done);
    if (status == CUDA_SUCCESS)
      parallelCopy(static_cast<std::byte*>(destination) + piece.at, piece.chunk.memory,
                   piece.bytes);
    staging->release(piece.chunk);
  };
  for (std::size_t at = 0; at < bytes && status == CUDA_SUCCESS;) {
    Piece piece{{}, at, nextPiece(bytes - at)};
    at += piece.bytes;
    while (!pieces.empty() && !staging->tryTake(piece.chunk, status)) finishOldest();
    if (piece.chunk.memory == nullptr) status = staging->take(piece.chunk);
    if (status != CUDA_SUCCESS) break;
    status = copyPinnedDtoH(piece.chunk.memory, source + piece.at, piece.bytes, stream, false);
    if (status == CUDA_SUCCESS) status = remote::cuEventRecord(piece.chunk.done, stream);
    pieces.push_back(piece);
    if (pieces.size() > kAhead) finishOldest();
  }
  while (!pieces.empty()) finishOldest();
  return status;
}

namespace {

/// The rows of a 2D copy's host end.
struct Rows {
  std::byte* begin;
  std::size_t pitch;
};

Rows sourceRows(const CUDA_MEMCPY2D& copy) {
  auto* base = const_cast<std::byte*>(static_cast<const std::byte*>(copy.srcHost));
  return {base + copy.srcY * copy.srcPitch + copy.srcXInBytes, copy.srcPitch};
}

Rows destinationRows(const CUDA_MEMCPY2D& copy) {
  return {static_cast<std::byte*>(copy.dstHost) + copy.dstY * copy.dstPitch + copy.dstXInBytes,
          copy.dstPitch};
}

void copyRows(Rows to, Rows from, std::size_t width, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row)
    std::memcpy(to.begin + row * to.pitch, from.begin + row * from.pitch, width);
}

/// A row wider than a chunk is a linear copy of its own.
CUresult stageWideRows(const CUDA_MEMCPY2D& copy, CUstream stream) {
  for (std::size_t row = 0; row < copy.Height; ++row) {
    const std::size_t deviceRow =
        copy.srcMemoryType == CU_MEMORYTYPE_HOST
            ? copy.dstDevice + (copy.dstY + row) * copy.dstPitch + copy.dstXInBytes
            : copy.srcDevice + (copy.srcY + row) * copy.srcPitch + copy.srcXInBytes;
    const CUresult status = copy.srcMemoryType == CU_MEMORYTYPE_HOST
                                ? stageHtoD(deviceRow, sourceRows(copy).begin + row * copy.srcPitch,
                                            copy.WidthInBytes, stream, false)
                                : stageDtoH(destinationRows(copy).begin + row * copy.dstPitch,
                                            deviceRow, copy.WidthInBytes, stream);
    if (status != CUDA_SUCCESS) return status;
  }
  return CUDA_SUCCESS;
}

/// Moves `rows` rows from `first` on through one chunk.
CUresult stageRows(Staging& staging, const CUDA_MEMCPY2D& copy, std::size_t first, std::size_t rows,
                   CUstream stream) {
  Chunk chunk;
  if (const CUresult status = staging.take(chunk); status != CUDA_SUCCESS) return status;
  const Rows packed{chunk.memory, copy.WidthInBytes};
  const bool upload = copy.srcMemoryType == CU_MEMORYTYPE_HOST;
  CUDA_MEMCPY2D part = copy;
  part.Height = rows;
  if (upload) {
    const Rows from = sourceRows(copy);
    copyRows(packed, {from.begin + first * from.pitch, from.pitch}, copy.WidthInBytes, rows);
    part.srcHost = chunk.memory;
    part.srcPitch = copy.WidthInBytes;
    part.srcXInBytes = part.srcY = 0;
    part.dstY += first;
  } else {
    part.dstHost = chunk.memory;
    part.dstPitch = copy.WidthInBytes;
    part.dstXInBytes = part.dstY = 0;
    part.srcY += first;
  }
  CUresult status = copy2D(part, stream, !upload);
  if (upload && status == CUDA_SUCCESS) return staging.submit(chunk, stream);
  if (status == CUDA_SUCCESS) {
    const Rows to = destinationRows(copy);
    copyRows({to.begin + first * to.pitch, to.pitch}, packed, copy.WidthInBytes, rows);
  }
  staging.release(chunk);
  return status;
}

}  // namespace

CUresult stage2D(const CUDA_MEMCPY2D& copy, CUstream stream, bool synchronise) {
  if (copy.srcMemoryType == CU_MEMORYTYPE_HOST && copy.dstMemoryType == CU_MEMORYTYPE_HOST) {
    if (const CUresult status = remote::cuStreamSynchronize(stream); status != CUDA_SUCCESS)
      return status;
    return copyRows(destinationRows(copy), sourceRows(copy), copy.WidthInBytes, copy.Height),
           CUDA_SUCCESS;
  }
  if (copy.WidthInBytes > kChunkBytes) {
    if (const CUresult status = stageWideRows(copy, stream); status != CUDA_SUCCESS) return status;
    return wait(stream, synchronise);
  }
  const RelaxedCapture relaxed;
  CUresult status = CUDA_SUCCESS;
  const auto staging = Staging::ofContext(status);
  if (staging == nullptr) return status;
  const Waiting waiting;
  const std::size_t rowsAtOnce = kChunkBytes / copy.WidthInBytes;
  for (std::size_t first = 0, rows = 0; first < copy.Height; first += rows) {
    rows = nextOf(copy.Height - first, rowsAtOnce, copy.WidthInBytes);
    status = stageRows(*staging, copy, first, rows, stream);
    if (status != CUDA_SUCCESS) return status;
  }
  return wait(stream, synchronise);
}

}  // namespace interposer
