// The fixed part of a launch frame. The parameters follow, and for cuLaunchKernelEx an array of
// attributes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

struct LaunchFrame {
  std::uint64_t function;  ///< handle of a function or kernel
  std::uint64_t stream;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t sharedBytes;
  std::uint32_t parameterBytes;  ///< that follow. Here and not before them, so that the frame of a
                                 ///< kernel without any fits a cache line
};
static_assert(sizeof(LaunchFrame) == 48);

/// Maximum bytes of a kernel's parameters, since CUDA 12.1.
inline constexpr std::size_t kMaxParameterBytes = 32764;
inline constexpr std::size_t kMaxLaunchAttributes = 64;

}  // namespace wire
