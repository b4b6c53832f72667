// The memory file of a channel, and its mapping. Internal to wire/: only the two ends of the
// channel include it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "wire/frame.h"
#include "wire/wait.h"

namespace wire {

/// Reasons why an end sleeps, in its sleeping flag. 0: it is awake.
inline constexpr std::uint32_t kSleepsForFrame = 1;
inline constexpr std::uint32_t kSleepsForReply = 2;
inline constexpr std::uint32_t kSleepsForRoom = 3;  ///< until `head` is at `wakeAtHead`

/// Words that different ends write are in different pairs of cache lines, because processors fetch
/// lines in pairs.
struct ChannelMemory {
  static constexpr std::size_t kLinePair = 128;

  /// Written once by the client: it publishes no more frames.
  alignas(kLinePair) std::atomic<std::uint32_t> closed;
  /// Written by the client before it sleeps for room: the position at which the worker wakes it.
  /// No more than was published, so the worker reaches it.
  std::atomic<std::uint64_t> wakeAtHead;
  /// Written by the worker: bytes consumed since the start.
  alignas(kLinePair) std::atomic<std::uint64_t> head;
  /// On separate lines: read at every publish and rarely written.
  alignas(kLinePair) Seat workerSeat;
  alignas(kLinePair) Seat clientSeat;
  /// Written by the worker: replies sent so far. The header shares its line, so an empty reply is
  /// one cache line transfer.
  alignas(kLinePair) std::atomic<std::uint64_t> replies;
  /// Set by the worker if it is 0; cleared by the client.
  std::atomic<std::int32_t> deferredError;
  /// Written by the worker, published by `replies`.
  ReplyHeader replyHeader;
  alignas(kLinePair / 2) std::byte replyPayload[kReplyBytes - sizeof(ReplyHeader)];
  /// Written by the GPU: the number of a reply. The wait that it answers has ended well.
  alignas(kLinePair) std::atomic<std::uint64_t> ended;
  /// Written by the client: frames, each published by its first word. The same pages are mapped
  /// again behind it, so that no frame is split.
  alignas(4096) std::byte ring[kRequestBytes];
  std::byte ringAgain[kRequestBytes];

  std::byte* at(std::uint64_t position) { return ring + (position & (kRequestBytes - 1)); }
  /// The first word of the frame at this position; 0 until it is published.
  std::atomic<std::uint64_t>& firstWord(std::uint64_t position) {
    return reinterpret_cast<std::atomic<std::uint64_t>&>(*at(position));
  }
};
static_assert((kRequestBytes & (kRequestBytes - 1)) == 0 && kMaxFrameBytes <= kRequestBytes / 2);

/// Bytes of the memory file: everything but the second view of the ring.
inline constexpr std::size_t kChannelFileBytes = offsetof(ChannelMemory, ringAgain);

/// Creates a memory file of the right size, sealed against changes of its size. Returns its
/// descriptor, or -1 with errno set.
int createChannelFile();
/// Whether a peer's file has the size and seals of createChannelFile(), so that no access to its
/// mapping faults.
bool isChannelFile(int file);

/// Maps the file with the ring twice in a row. Null with errno set on failure.
ChannelMemory* mapChannel(int file);
void unmapChannel(ChannelMemory* memory);

}  // namespace wire
