#include "interposer/memory/block.h"

#include <utility>

#include "interposer/memory/host_memory.h"
#include "interposer/memory/parallel_copy.h"
#include "interposer/memory/pinned_copy.h"

namespace interposer {

namespace {

bool isHost(CUmemorytype type, CUdeviceptr unified) {
  return type == CU_MEMORYTYPE_HOST || (type == CU_MEMORYTYPE_UNIFIED && !isDevice(unified));
}

HostEnd hostEnd(CUmemorytype type, const void* host, CUdeviceptr unified, std::size_t pitch,
                std::size_t height, std::size_t x, std::size_t y, std::size_t z) {
  if (!isHost(type, unified)) return {};
  const void* base = type == CU_MEMORYTYPE_HOST ? host : reinterpret_cast<const void*>(unified);
  auto* begin = static_cast<std::byte*>(const_cast<void*>(base));
  return {begin + z * pitch * height + y * pitch + x, pitch, pitch * height};
}

bool isReachable(const HostEnd& end, const Block& block) {
  if (end.begin == nullptr) return true;
  return isPinned(end.begin, (block.layers() - 1) * end.slice + (block.rows() - 1) * end.pitch +
                                 block.params.WidthInBytes);
}

}  // namespace

Block readBlock(const CUDA_MEMCPY3D& params) {
  const auto orWidth = [&](std::size_t pitch, std::size_t x) {
    return pitch != 0 ? pitch : params.WidthInBytes + x;
  };
  const auto orRows = [&](std::size_t height, std::size_t y) {
    return height != 0 ? height : std::max<std::size_t>(params.Height, 1) + y;
  };
  Block block{params, {}, {}};
  block.from =
      hostEnd(params.srcMemoryType, params.srcHost, params.srcDevice,
              orWidth(params.srcPitch, params.srcXInBytes), orRows(params.srcHeight, params.srcY),
              params.srcXInBytes, params.srcY, params.srcZ);
  block.to =
      hostEnd(params.dstMemoryType, params.dstHost, params.dstDevice,
              orWidth(params.dstPitch, params.dstXInBytes), orRows(params.dstHeight, params.dstY),
              params.dstXInBytes, params.dstY, params.dstZ);
  return block;
}

bool isPageable(const Block& block) {
  return block.params.WidthInBytes != 0 &&
         (!isReachable(block.from, block) || !isReachable(block.to, block));
}

/// Rows without gaps in between are copied as one.
void copyRows(const HostEnd& to, const HostEnd& from, const Block& block) {
  std::size_t width = block.params.WidthInBytes;
  std::size_t rows = block.rows();
  std::size_t layers = block.layers();
  if (to.pitch == width && from.pitch == width) width *= std::exchange(rows, 1);
  if (rows == 1 && to.slice == width && from.slice == width) width *= std::exchange(layers, 1);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    for (std::size_t row = 0; row < rows; ++row)
      parallelCopy(to.begin + layer * to.slice + row * to.pitch,
                   from.begin + layer * from.slice + row * from.pitch, width);
  }
}

CUDA_MEMCPY3D throughPinned(const Block& block, std::byte* pinned) {
  CUDA_MEMCPY3D params = block.params;
  if (block.from.begin != nullptr) {
    params.srcMemoryType = CU_MEMORYTYPE_HOST;
    params.srcHost = pinned;
    params.srcPitch = params.WidthInBytes;
    params.srcHeight = block.rows();
    params.srcXInBytes = params.srcY = params.srcZ = 0;
  } else {
    params.dstMemoryType = CU_MEMORYTYPE_HOST;
    params.dstHost = pinned;
    params.dstPitch = params.WidthInBytes;
    params.dstHeight = block.rows();
    params.dstXInBytes = params.dstY = params.dstZ = 0;
  }
  return params;
}

}  // namespace interposer
