// Messages on the session socket (a Unix stream socket): what is rare, what carries a file descriptor, and the hello.
// The hello crosses builds, so it carries a version; the rest is of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace wire {

inline constexpr std::uint32_t kHelloVersion = 1;
/// The most bytes that one message carries; a longer one is refused and ends the session.
inline constexpr std::size_t kMaxMessageBytes = std::size_t{4} << 20;

enum class MessageKind : std::uint32_t {
  hello = 1,     ///< client: Hello, then `NAME=value` strings of the environment that the driver reads
  welcome = 2,   ///< worker: Welcome, then devices (interposer/devices.h), or a refusal with its sentence
  channel = 3,   ///< client: the memory file of a new channel
  memory = 4,    ///< client: a memory file, named by an id that a later frame refers to
  text = 5,      ///< worker: bytes for the program's stdout (stream 1) or stderr (stream 2), or a sentence for CUDA_LOG_FILE (kLogStream)
  callback = 6,  ///< worker: run a host function of the program
  callbackDone = 7,  ///< client: it returned
  unsupported = 8,   ///< client: the name of a call that it refused, for the log
};

inline constexpr MessageKind kLastMessageKind = MessageKind::unsupported;

inline constexpr int kLogStream = 0;

struct MessageHeader {
  MessageKind kind;
  std::uint32_t bytes;  ///< of the payload that follows
  std::uint64_t id;     ///< of a memory, callback or text stream; else 0
};
static_assert(sizeof(MessageHeader) == 16);

struct Message {
  MessageHeader header{};
  std::vector<std::byte> payload;
  int file = -1;  ///< owned by whoever received the message; -1: none
};

/// Sends one message whole, with at most one file descriptor. False (errno set) when the peer is gone. Callers serialise.
bool sendMessage(int socket, MessageKind kind, std::uint64_t id, std::span<const std::byte> payload, int file = -1);

/// Receives one message whole, waiting for it. False at the peer's end, or when it breaks the format.
bool receiveMessage(int socket, Message& message);

}  // namespace wire
