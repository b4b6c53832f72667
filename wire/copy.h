// The frames of copies. Host addresses in them are of memory that both ends share at the same address; 0 stands for bytes that travel
// in the frame (host to device) or in the reply (device to host).
#pragma once

#include <cstdint>

namespace wire {

/// Copies between host and device of more than that take no window of the GPU's time: the copy engines do them beside whatever it computes.
inline constexpr std::uint64_t kSmallCopyBytes = 64 << 10;

struct CopyFrame {
  std::uint64_t destination;
  std::uint64_t source;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint32_t synchronise;  ///< 1: the reply is sent when the copy is done
  std::uint32_t reserved;
};
static_assert(sizeof(CopyFrame) == 40);

}  // namespace wire
