// Attributes of the simulated GPU.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace simulator {

inline constexpr char kDeviceName[] = "Simulated GPU";

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
inline constexpr unsigned kBlocksPerCluster = 8;  ///< 16 if a kernel allows the non-portable size

/// Maximum bytes that a context reserves on a device: as much as a context of the real driver holds
/// before its first allocation.
inline constexpr std::size_t kContextBytes = std::size_t{526} << 20;

/// Reads an attribute of the device with this index on the machine. False if the attribute does not
/// exist.
bool deviceAttribute(int device, int attribute, int& value);

}  // namespace simulator
