// The one table of what the simulated GPU says about itself.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace simulator {

class Device;

inline constexpr char kDeviceName[] = "Simulated GPU";
inline constexpr int kNewestApi = 13000;
inline constexpr unsigned kComputeCapability = 90;

inline constexpr unsigned kMultiprocessors = 132;
inline constexpr unsigned kWarpSize = 32;
inline constexpr unsigned kThreadsPerBlock = 1024;
inline constexpr unsigned kThreadsPerMultiprocessor = 2048;
inline constexpr unsigned kBlocksPerMultiprocessor = 32;
inline constexpr unsigned kRegistersPerMultiprocessor = 65536;
inline constexpr unsigned kRegistersPerBlock = 65536;
inline constexpr unsigned kSharedPerBlock = 48 << 10;
inline constexpr unsigned kSharedPerBlockOptin = 227 << 10;
inline constexpr unsigned kSharedPerMultiprocessor = 228 << 10;
inline constexpr unsigned kReservedSharedPerBlock = 1 << 10;
inline constexpr unsigned kBlockDim[3] = {1024, 1024, 64};
inline constexpr unsigned kGridDim[3] = {2147483647, 65535, 65535};
inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;
inline constexpr unsigned kBlocksPerCluster = 8;  ///< 16 when a kernel allows the non-portable size

/// Most that one context may take of a device for itself: what a context of the real driver holds before its first allocation.
inline constexpr std::size_t kContextBytes = std::size_t{526} << 20;

/// False for a number that names no attribute.
bool deviceAttribute(const Device& device, int attribute, int& value);

}  // namespace simulator
