// A copy of layers of rows, as CUDA_MEMCPY3D describes it, and its ends in memory of the program.
#pragma once

#include <algorithm>
#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// One end of a copy, if it is in memory of the program.
struct HostEnd {
  std::byte* begin = nullptr;  ///< null: the end is elsewhere
  std::size_t pitch = 0;
  std::size_t slice = 0;  ///< bytes from one layer to the next
};

struct Block {
  CUDA_MEMCPY3D params;  ///< as the program gave them
  HostEnd from, to;

  std::size_t rows() const { return std::max<std::size_t>(params.Height, 1); }
  std::size_t layers() const { return std::max<std::size_t>(params.Depth, 1); }
  std::size_t bytes() const { return params.WidthInBytes * rows() * layers(); }
  /// The same rows without gaps.
  HostEnd packedAt(std::byte* memory) const {
    return {memory, params.WidthInBytes, params.WidthInBytes * rows()};
  }
};

/// A pitch or height of 0 stands for that of the copy.
Block readBlock(const CUDA_MEMCPY3D& params);

/// Whether an end is memory of the program that the worker does not have.
bool isPageable(const Block& block);

/// Copies the rows of the block between two ends in memory of the program.
void copyRows(const HostEnd& to, const HostEnd& from, const Block& block);

/// The same copy with its end in the program replaced by packed rows in pinned memory.
CUDA_MEMCPY3D throughPinned(const Block& block, std::byte* pinned);

}  // namespace interposer
