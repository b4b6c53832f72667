// Frames of copies. Host addresses refer to memory shared at the same address. 0: the bytes are in
// the frame (host to device) or in the reply (device to host).
#pragma once

#include <cstdint>

namespace wire {

/// Larger copies between host and device need no window of GPU time, because the copy engines do
/// them beside kernels.
inline constexpr std::uint64_t kSmallCopyBytes = 64 << 10;

/// When the client may go on.
enum CopyWait : std::uint32_t {
  kCopyEnqueued = 0,  ///< when the driver has the copy
  kCopyEnds = 1,      ///< when the copy has ended: the reply is sent then
  /// The same for a copy with the legacy default stream, which has nothing else to do. The worker
  /// begins no later call of the session before the driver's waiting copy has returned.
  kCopyEndsInTurn = 2,
};

struct CopyFrame {
  std::uint64_t destination;
  std::uint64_t source;
  std::uint64_t bytes;
  std::uint64_t stream;
  std::uint32_t wait;  ///< CopyWait
  std::uint32_t reserved;
};
static_assert(sizeof(CopyFrame) == 40);

}  // namespace wire
