// How much GPU memory an array takes. The driver chooses its layout, and says it only of arrays
// whose memory is mapped later.
#pragma once

#include <cstdint>

#include "cuda_abi.h"

namespace worker {

/// Upper bound for any layout of blocks of rows, in bytes: NVIDIA's GPUs store arrays in units of
/// 64 bytes by 8 rows, which are combined into blocks of up to 32 units in height and depth.
/// Saturates. `levels`: mipmap levels; 1 for an array.
std::uint64_t mostArrayBytes(const CUDA_ARRAY3D_DESCRIPTOR& descriptor, unsigned levels);

/// An array's part of the blocks of 2 MiB that it shares with arrays of its size (measured on an
/// H200, driver 580: three arrays of 528 or 625 KiB per block).
std::uint64_t shareOfBlock(std::uint64_t bytes);

}  // namespace worker
