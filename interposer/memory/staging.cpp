#include "interposer/memory/staging.h"

#include <deque>

#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/parallel_copy.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/memory/staging_chunks.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"
#include "remote.h"

namespace interposer {

namespace {

/// A chunk is filled in portions: the first is on its way while the next is copied. Larger copies
/// have several chunks under way.
constexpr std::size_t kPortionBytes = std::size_t{256} << 10;

std::size_t nextPiece(std::size_t left) { return nextOf(left, kChunkBytes, 1); }

/// Copies the source to the chunk, and the chunk to the device.
CUresult copyThrough(const Chunk& chunk, CUdeviceptr destination, const std::byte* source,
                     std::size_t bytes, std::size_t atOnce, CUstream stream) {
  CUresult status = CUDA_SUCCESS;
  for (std::size_t at = 0, portion = 0; at < bytes && status == CUDA_SUCCESS; at += portion) {
    portion = nextOf(bytes - at, atOnce, 1);
    parallelCopy(chunk.memory + at, source + at, portion);
    status = copyPinnedHtoD(destination + at, chunk.memory + at, portion, stream, false);
  }
  return status;
}

CUresult wait(CUstream stream, bool synchronise) {
  return synchronise ? interposer::cuStreamSynchronize(stream) : CUDA_SUCCESS;
}

}  // namespace

CUresult stageHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream,
                   bool synchronise) {
  const RelaxedCapture relaxed;
  CUresult status = CUDA_SUCCESS;
  const auto staging = Staging::ofContext(status);
  if (staging == nullptr) return status;
  const bool known = isAllocated(destination, bytes);
  const Waiting waiting(!known);
  // Where the driver may refuse, it refuses the whole.
  const std::size_t atOnce = known && bytes < kSharedCopyBytes ? kPortionBytes : kChunkBytes;
  for (std::size_t at = 0, piece = 0; at < bytes; at += piece) {
    piece = nextPiece(bytes - at);
    Chunk chunk;
    if (status = staging->take(chunk); status != CUDA_SUCCESS) return status;
    status = copyThrough(chunk, destination + at, static_cast<const std::byte*>(source) + at, piece,
                         atOnce, stream);
    // After an error too: a part may be under way. It may be the error of an earlier call.
    const CUresult submitted = staging->submit(chunk, stream);
    if (status == CUDA_SUCCESS) status = submitted;
    if (status != CUDA_SUCCESS) return status;
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

}  // namespace interposer
