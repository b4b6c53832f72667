// The connection to the client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "wire/message.h"

namespace worker {

class Connection {
 public:
  explicit Connection(int file) : file_(file) {}

  int file() const { return file_; }

  /// Any thread. False when the client is gone.
  bool send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload) {
    const std::lock_guard lock(mutex_);
    return wire::sendMessage(file_, kind, id, payload);
  }
  /// One thread only. False at the client's end, or when it breaks the format.
  bool receive(wire::Message& message) { return wire::receiveMessage(file_, message); }

 private:
  const int file_;
  std::mutex mutex_;  ///< of those that send
};

}  // namespace worker
