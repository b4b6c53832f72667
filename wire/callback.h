// Payload of MessageKind::callback: a host function that a stream has reached.
#pragma once

#include <cstdint>

namespace wire {

enum class CallbackKind : std::uint32_t { hostFunction = 1, streamCallback = 2 };

struct Callback {
  CallbackKind kind;
  std::int32_t status;     ///< CUresult, for a stream callback
  std::uint64_t function;  ///< addresses and handles of the client
  std::uint64_t userData;
  std::uint64_t stream;
  std::uint64_t text;  ///< device output sent before it, as in ReplyHeader
};

}  // namespace wire
