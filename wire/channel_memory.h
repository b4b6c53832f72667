// The memory file behind a channel, and how both ends map it. Inner to wire/: only the two ends of the channel include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/frame.h"
#include "wire/wait.h"

namespace wire {

/// Why an end sleeps, in its sleeping flag. 0: it is awake.
inline constexpr std::uint32_t kSleepsForFrame = 1;
inline constexpr std::uint32_t kSleepsForReply = 2;
inline constexpr std::uint32_t kSleepsForRoom = 3;

/// Words that different ends write lie in different pairs of cache lines (processors fetch them in pairs).
struct ChannelMemory {
  static constexpr std::size_t kLinePair = 128;

  /// Written by the client, once: it will publish no more.
  alignas(kLinePair) std::atomic<std::uint32_t> closed;
  /// Written by the client before it sleeps for room: how far the worker must have come to wake it. Never goes back.
  std::atomic<std::uint64_t> wakeAtHead;
  /// Written by the worker: bytes consumed since the start.
  alignas(kLinePair) std::atomic<std::uint64_t> head;
  /// On lines of their own: read at every publish and almost never written.
  alignas(kLinePair) Seat workerSeat;
  alignas(kLinePair) Seat clientSeat;
  /// Written by the worker: replies sent so far. The header shares its line, so an empty reply is one line's journey.
  alignas(kLinePair) std::atomic<std::uint32_t> replies;
  /// Set by the worker when it is 0, cleared by the client.
  std::atomic<std::int32_t> deferredError;
  /// Written by the worker, published by `replies`.
  ReplyHeader replyHeader;
  alignas(kLinePair / 2) std::byte replyPayload[kReplyBytes - sizeof(ReplyHeader)];
  /// Written by the client: frames, each published by its first word. The same pages again behind it, so that no frame is ever split.
  alignas(4096) std::byte ring[kRequestBytes];
  std::byte ringAgain[kRequestBytes];

  std::byte* at(std::uint64_t position) { return ring + (position & (kRequestBytes - 1)); }
  /// The first word of the frame that begins there; 0 while it is not published.
  std::atomic<std::uint64_t>& firstWord(std::uint64_t position) { return reinterpret_cast<std::atomic<std::uint64_t>&>(*at(position)); }
};
static_assert((kRequestBytes & (kRequestBytes - 1)) == 0 && kMaxFrameBytes <= kRequestBytes / 2);

/// Bytes of the memory file: everything but the second view of the ring.
inline constexpr std::size_t kChannelFileBytes = offsetof(ChannelMemory, ringAgain);

/// A new memory file of the right size, sealed against any change of size; -1 with errno set.
int createChannelFile();
/// Whether a file that a peer sent is what createChannelFile() makes, so that no access to its mapping can fault.
bool isChannelFile(int file);

/// Maps the file with the ring twice in a row; null with errno set.
ChannelMemory* mapChannel(int file);
void unmapChannel(ChannelMemory* memory);

}  // namespace wire
