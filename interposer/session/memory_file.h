// Anonymous memory that can be handed to the worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace interposer {

class Session;

/// Memory with bytes that do not fit into a frame.
struct SentMemory {
  std::uint64_t id = 0;  ///< 0: it could not be sent
  std::uint64_t bytes = 0;
};

/// A memory file of `bytes` that can neither shrink nor grow; -1 with errno set.
int createMemoryFile(std::size_t bytes);

/// Sends the pieces, one after the other (each 8-byte aligned), in a sealed memory file.
SentMemory sendBytes(Session& session, std::span<const std::span<const std::byte>> pieces);

}  // namespace interposer
