// Messages on the session socket (a Unix stream socket): rare ones, those with a file descriptor,
// and the hello. Only the hello has a version, because the rest is of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wire {

inline constexpr std::uint32_t kHelloVersion = 1;
/// Maximum payload in bytes; a longer message ends the session.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{4} << 20;

enum class MessageKind : std::uint32_t {
  hello = 1,  ///< client: Hello, then `NAME=value` strings of the environment that the driver reads
  welcome = 2,   ///< worker: Welcome and the devices, or a refusal with its sentence
  channel = 3,   ///< client: the memory file of a new channel; kAnswersFaults: of the thread
                 ///< that answers page faults
  memory = 4,    ///< client: a memory file, named by an id that a later frame refers to
  text = 5,      ///< worker: bytes for the program's stdout (stream 1) or stderr (stream 2), or a
                 ///< sentence for CUDA_LOG_FILE (kLogStream)
  callback = 6,  ///< worker: run a host function of the program
  callbackDone = 7,  ///< client: the function has returned
  unsupported = 8,   ///< client: the name of a call that it refused, for the log
  notFound = 9,  ///< client: names, separated by commas, that cuGetProcAddress did not find; id 1:
                 ///< of a CUDA runtime's table
};

inline constexpr MessageKind kLastMessageKind = MessageKind::notFound;

inline constexpr int kLogStream = 0;
inline constexpr std::uint64_t kAnswersFaults = 1;  ///< id of a channel

struct MessageHeader {
  MessageKind kind;
  std::uint32_t bytes;  ///< bytes of the payload
  std::uint64_t id;     ///< id of a memory, callback or text stream; else 0
};
static_assert(sizeof(MessageHeader) == 16);

struct Message {
  MessageHeader header{};
  std::vector<std::byte> payload;
  int file = -1;  ///< owned by the receiver; -1: none
};

/// Sends one message, with at most one file descriptor. Returns false if the peer is gone, or if
/// the socket is full and the descriptor `end` is readable. Not thread-safe: callers serialise.
bool sendMessage(int socket, MessageKind kind, std::uint64_t id, std::span<const std::byte> payload,
                 int file = -1, int end = -1);

/// Waits for one message. Returns false if the peer is gone or violates the format, or if more
/// bytes do not come before the descriptor `end` is readable.
bool receiveMessage(int socket, Message& message, int end = -1);

}  // namespace wire
