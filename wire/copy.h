// Frames of copies. Host addresses refer to memory shared at the same address. 0: the bytes are in
// the frame (host to device) or in the reply (device to host).
#pragma once

#include <cstdint>

namespace wire {

/// Larger copies between host and device need no window of GPU time, because the copy engines do
/// them beside kernels.
inline constexpr std::uint64_t kSmallCopyBytes = 64 << 10;

struct CopyFrame {
  std::uint64_t destination;
  std::uint64_t source;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint32_t synchronise;  ///< 1: the reply is sent after the copy has ended
  std::uint32_t reserved;
};
static_assert(sizeof(CopyFrame) == 40);

}  // namespace wire
