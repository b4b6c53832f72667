// The driver's JIT cache: a directory of the allocation. The driver is given a path through a descriptor of this process, so that a driver
// that has started already can be given another directory, and one that the worker's user could not reach by name.
#pragma once

#include <string>

namespace worker {

/// What CUDA_CACHE_PATH is; its number is kCacheDirectory of descriptors.h.
inline constexpr const char* kCachePath = "/proc/self/fd/5";

/// From here on the path is this directory; empty: one that takes nothing. A sentence when it cannot be.
std::string useCache(const std::string& directory);

}  // namespace worker
