// Sums of the memory that images declare. Their declarations are the program's, so sums must not
// wrap.
#pragma once

#include <algorithm>
#include <cstdint>

namespace worker {

/// Bytes: more than any GPU has.
inline constexpr std::uint64_t kMostImageMemory = std::uint64_t{1} << 50;

/// At most kMostImageMemory.
constexpr std::uint64_t addMemory(std::uint64_t one, std::uint64_t other) {
  return std::min(kMostImageMemory,
                  std::min(kMostImageMemory, one) + std::min(kMostImageMemory, other));
}

}  // namespace worker
