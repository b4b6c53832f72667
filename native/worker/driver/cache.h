// The driver's JIT cache: a directory of the allocation. The driver's path goes through a
// descriptor of this process. So the directory can change after the driver has started, and need
// not be reachable by name for the worker's user.
#pragma once

#include <string>

namespace worker {

/// Value of CUDA_CACHE_PATH; its number is kCacheDirectory of descriptors.h.
inline constexpr const char* kCachePath = "/proc/self/fd/5";

/// Value of CUDA_CACHE_MAXSIZE in bytes: the driver removes entries that were not used for the
/// longest time. gpu-proxy ends sessions that exceed it.
inline constexpr const char* kCacheBytes = "1073741824";

/// Points the path to this directory; empty: to one that stores nothing. Returns a sentence on
/// failure.
std::string useCache(const std::string& directory);

}  // namespace worker
