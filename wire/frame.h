// The layout of everything that interposer and worker share through memory. Both are of one build, so nothing here carries a version:
// the hello (message.h) compares the build id.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

/// Bytes of a channel's request ring (a power of two) and of its reply area.
inline constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kReplyBytes = std::size_t{128} << 10;

/// The longest frame, header included. Longer payloads travel in staging chunks or as a memory file (message.h).
inline constexpr std::size_t kMaxFrameBytes = std::size_t{96} << 10;

/// The longest name of a kernel that is taken, its end included. Those of templates grow long.
inline constexpr std::size_t kNameBytes = std::size_t{64} << 10;

/// The most bytes of a copy that travel inside a frame or a reply.
inline constexpr std::size_t kInlineCopyBytes = std::size_t{64} << 10;

/// Set in FrameHeader::flags when the client waits for a reply.
inline constexpr std::uint16_t kFrameWantsReply = 1;

/// Every frame begins on a cache line of its own: the worker, reading the end of one, must not take away the line in which the client
/// writes the next.
inline constexpr std::size_t kFrameAlignment = 64;
constexpr std::uint64_t frameSpan(std::uint64_t length) { return (length + kFrameAlignment - 1) & ~std::uint64_t{kFrameAlignment - 1}; }

/// Begins every request frame. Its first word, never 0, is what the worker watches: the client writes it last, and before it a 0 where the
/// next frame will begin. So a frame that fits a cache line reaches the worker in one journey.
struct FrameHeader {
  std::uint32_t length;  ///< bytes of the whole frame, this header included; a multiple of 8
  std::uint16_t call;    ///< CallNumber (generated)
  std::uint16_t flags;
  std::uint64_t ticket;  ///< place in the session's submission order, counted from 1; 0: unordered
};
static_assert(sizeof(FrameHeader) == 16);

/// Begins every reply.
struct ReplyHeader {
  std::uint32_t length;  ///< bytes of the whole reply, this header included
  std::int32_t status;   ///< CUresult of the call
  std::uint64_t text;    ///< bytes of device output sent on the session socket before this reply: the client writes them out first
};
static_assert(sizeof(ReplyHeader) == 16);

}  // namespace wire
