#include "interposer/memory/block_copy.h"

#include <utility>

#include "interposer/graphs/pageable_copy.h"
#include "interposer/memory/block.h"
#include "interposer/memory/pinned_copy.h"
#include "interposer/memory/staging_chunks.h"
#include "interposer/session/call.h"
#include "interposer_bodies.h"

namespace interposer {

namespace {

/// The worker has both ends.
CUresult send(const CUDA_MEMCPY3D& copy, const Run& run) {
  Call call;
  const auto number = run.peer ? CallNumber::cuMemcpy3DPeerAsync : CallNumber::cuMemcpy3DAsync_v2;
  if (!call.begin(number, sizeof copy + 16, kOrdered)) return call.status();
  call.encoder().put(copy);
  call.encoder().put(interposer::number(run.stream));
  call.encoder().put<std::uint32_t>(run.synchronise);
  wire::Decoder reply;
  return call.wait(reply);
}

/// A part of a block that fits into a chunk.
struct Piece {
  std::size_t x, row, layer;
  std::size_t width, rows, layers;
};

/// Whole layers, else rows of a layer, else parts of a row. Parts begin at whole elements of
/// arrays.
template <class Use>
CUresult forEachPiece(const Block& block, Use use) {
  const std::size_t rowBytes = block.params.WidthInBytes;
  const std::size_t layerBytes = rowBytes * block.rows();
  const std::size_t rowsAtOnce = std::max<std::size_t>(kChunkBytes / rowBytes, 1);
  const std::size_t layersAtOnce = std::max<std::size_t>(kChunkBytes / layerBytes, 1);
  Piece piece{};
  for (piece.layer = 0; piece.layer < block.layers(); piece.layer += piece.layers) {
    piece.layers = nextOf(block.layers() - piece.layer, layersAtOnce, layerBytes);
    for (piece.row = 0; piece.row < block.rows(); piece.row += piece.rows) {
      piece.rows = nextOf(block.rows() - piece.row, rowsAtOnce, rowBytes);
      for (piece.x = 0; piece.x < rowBytes; piece.x += piece.width) {
        const std::size_t left = rowBytes - piece.x;
        piece.width = left <= kChunkBytes ? left : nextOf(left, kChunkBytes, 1) / 16 * 16;
        if (const CUresult status = use(piece); status != CUDA_SUCCESS) return status;
      }
    }
  }
  return CUDA_SUCCESS;
}

void advance(HostEnd& end, const Piece& piece) {
  if (end.begin != nullptr) end.begin += piece.layer * end.slice + piece.row * end.pitch + piece.x;
}

/// The copy of one piece. Only the end that is not in the program keeps its offsets.
Block partOf(const Block& whole, const Piece& piece) {
  Block part = whole;
  part.params.WidthInBytes = piece.width;
  part.params.Height = piece.rows;
  part.params.Depth = piece.layers;
  part.params.srcXInBytes += piece.x, part.params.dstXInBytes += piece.x;
  part.params.srcY += piece.row, part.params.dstY += piece.row;
  part.params.srcZ += piece.layer, part.params.dstZ += piece.layer;
  advance(part.from, piece);
  advance(part.to, piece);
  return part;
}

CUresult stagePiece(Staging& staging, const Block& part, Run run) {
  Chunk chunk;
  if (const CUresult status = staging.take(chunk); status != CUDA_SUCCESS) return status;
  const bool upload = part.from.begin != nullptr;
  if (upload) copyRows(part.packedAt(chunk.memory), part.from, part);
  run.synchronise = !upload;
  const CUresult status = send(throughPinned(part, chunk.memory), run);
  if (upload && status == CUDA_SUCCESS) return staging.submit(chunk, run.stream);
  if (status == CUDA_SUCCESS) copyRows(part.to, part.packedAt(chunk.memory), part);
  staging.release(chunk);
  return status;
}

/// A copy with memory of the program at one end. Returns when it has read or written that memory.
CUresult stage(const Block& block, const Run& run) {
  const RelaxedCapture relaxed;
  CUresult status = CUDA_SUCCESS;
  const auto staging = Staging::ofContext(status);
  if (staging == nullptr) return status;
  const Waiting waiting;
  status = forEachPiece(
      block, [&](const Piece& piece) { return stagePiece(*staging, partOf(block, piece), run); });
  return status == CUDA_SUCCESS && run.synchronise ? interposer::cuStreamSynchronize(run.stream)
                                                   : status;
}

/// Resolves CU_MEMORYTYPE_UNIFIED by the address. So does CU_MEMORYTYPE_HOST with device memory.
template <class Host>
void resolve(CUmemorytype& type, CUdeviceptr& device, Host*& host) {
  if (type == CU_MEMORYTYPE_HOST)
    device = reinterpret_cast<CUdeviceptr>(host);
  else if (type != CU_MEMORYTYPE_UNIFIED)
    return;
  type = isDevice(device) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  if (type == CU_MEMORYTYPE_HOST) host = reinterpret_cast<Host*>(device);
}

/// Fills in the distances of rows and layers that the program left out. False if rows or layers
/// would overlap.
bool complete(CUmemorytype type, std::size_t& pitch, std::size_t& height, std::size_t x,
              std::size_t y, const CUDA_MEMCPY3D& copy) {
  if (type == CU_MEMORYTYPE_ARRAY) return true;
  if (pitch == 0) pitch = copy.WidthInBytes + x;
  if (height == 0) height = copy.Height + y;
  return pitch >= copy.WidthInBytes + x && (copy.Depth == 1 || height >= copy.Height + y);
}

}  // namespace

CUresult copyBlock(CUDA_MEMCPY3D copy, const Run& run) {
  if (const CUresult status = Session::ready(); status != CUDA_SUCCESS) return status;
  if (copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0) return CUDA_SUCCESS;
  resolve(copy.srcMemoryType, copy.srcDevice, copy.srcHost);
  resolve(copy.dstMemoryType, copy.dstDevice, copy.dstHost);
  if (!complete(copy.srcMemoryType, copy.srcPitch, copy.srcHeight, copy.srcXInBytes, copy.srcY,
                copy) ||
      !complete(copy.dstMemoryType, copy.dstPitch, copy.dstHeight, copy.dstXInBytes, copy.dstY,
                copy))
    return CUDA_ERROR_INVALID_VALUE;
  const Block block = readBlock(copy);
  if ((block.from.begin != nullptr && copy.srcHost == nullptr) ||
      (block.to.begin != nullptr && copy.dstHost == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  const bool readsNow = run.readsNow && block.from.begin != nullptr;
  if (!isPageable(block) && !readsNow) return send(copy, run);
  if (!run.synchronise && captures(run.stream)) {
    if (run.peer) copy.reserved0 = copy.reserved1 = nullptr;
    return captureCopy(copy, run.stream);
  }
  if (block.from.begin == nullptr || block.to.begin == nullptr) return stage(block, run);
  if (const CUresult status = interposer::cuStreamSynchronize(run.stream); status != CUDA_SUCCESS)
    return status;
  return copyRows(block.to, block.from, block), CUDA_SUCCESS;
}

}  // namespace interposer
