// Layout of the memory that interposer and worker share. Both are of one build, so it has no
// version: the hello (message.h) compares the build ids.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

/// Bytes of a channel's request ring, a power of two, and of its reply area.
inline constexpr std::size_t kRequestBytes = std::size_t{1} << 20;
inline constexpr std::size_t kReplyBytes = std::size_t{128} << 10;

/// Maximum bytes of a frame with its header. Longer payloads are sent in staging chunks or as a
/// memory file (message.h).
inline constexpr std::size_t kMaxFrameBytes = std::size_t{96} << 10;

/// Maximum bytes of a kernel's name with its terminator. Names of templates are long.
inline constexpr std::size_t kNameBytes = std::size_t{64} << 10;

/// Maximum bytes of a copy inside a frame or a reply.
inline constexpr std::size_t kInlineCopyBytes = std::size_t{64} << 10;

/// Set in FrameHeader::flags if the client waits for a reply.
inline constexpr std::uint16_t kFrameWantsReply = 1;
/// The ticket is shared (ticket.h).
inline constexpr std::uint16_t kFrameShares = 2;

/// Every frame begins on its own cache line. Otherwise the worker, reading the end of a frame,
/// would take the line in which the client writes the next.
inline constexpr std::size_t kFrameAlignment = 64;
constexpr std::uint64_t frameSpan(std::uint64_t length) {
  return (length + kFrameAlignment - 1) & ~std::uint64_t{kFrameAlignment - 1};
}

/// Start of every request frame. The worker polls the first word, which is never 0. The client
/// writes it last, after a 0 at the start of the next frame. So a frame of one cache line reaches
/// the worker in one transfer.
struct FrameHeader {
  std::uint32_t length;  ///< bytes of the frame with this header; a multiple of 8
  std::uint16_t call;    ///< CallNumber (generated)
  std::uint16_t flags;
  std::uint64_t ticket;  ///< place in the session's submission order (ticket.h); 0: unordered
};
static_assert(sizeof(FrameHeader) == 16);

/// Start of every reply.
struct ReplyHeader {
  std::uint32_t length;  ///< bytes of the reply with this header
  std::int32_t status;   ///< CUresult of the call
  std::uint64_t text;  ///< bytes of device output sent on the session socket before this reply: the
                       ///< client writes them out first
};
static_assert(sizeof(ReplyHeader) == 16);

}  // namespace wire
