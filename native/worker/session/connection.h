// The connection to the client. A client that does not read, or sends half a message, delays
// neither its own end nor that of the session: see endsWith().
#pragma once

#include <sys/epoll.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "wire/message.h"

namespace worker {

class Connection {
 public:
  explicit Connection(int file) : file_(file), end_(epoll_create1(EPOLL_CLOEXEC)) {}
  ~Connection() { close(end_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int file() const { return file_; }

  /// Once this descriptor is readable, no thread waits any longer for the client to read or write.
  void endsWith(int descriptor) {
    ends_.push_back(descriptor);
    watch(descriptor);
  }
  /// Lets other files take the numbers of these descriptors.
  void pauseEnds() const {
    for (const int descriptor : ends_) epoll_ctl(end_, EPOLL_CTL_DEL, descriptor, nullptr);
  }
  void resumeEnds() const {
    for (const int descriptor : ends_) watch(descriptor);
  }

  /// Any thread. False when the client is gone, or does not read and the end has come.
  bool send(wire::MessageKind kind, std::uint64_t id, std::span<const std::byte> payload,
            int file = -1) {
    const std::lock_guard lock(mutex_);
    return wire::sendMessage(file_, kind, id, payload, file, end_);
  }
  /// One thread only. False at the client's end, when it breaks the format, or when the rest of the
  /// message has not come before the end.
  bool receive(wire::Message& message) { return wire::receiveMessage(file_, message, end_); }

 private:
  void watch(int descriptor) const {
    epoll_event readable{EPOLLIN, {.fd = descriptor}};
    epoll_ctl(end_, EPOLL_CTL_ADD, descriptor, &readable);
  }

  const int file_;
  const int end_;          ///< epoll: readable from the end on
  std::vector<int> ends_;  ///< what it watches
  std::mutex mutex_;       ///< of those that send
};

}  // namespace worker
