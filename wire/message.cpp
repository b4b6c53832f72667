#include "wire/message.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "wire/received_files.h"

namespace wire {

namespace {

// Waits for the socket. False if the end comes first, or on an error.
bool isReady(int socket, short events, int end) {
  pollfd waits[] = {{socket, events, 0}, {end, POLLIN, 0}};
  while (poll(waits, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return waits[0].revents != 0;
}

// Waits if the socket is non-blocking: the event loop of the accepting end sets that for both ends.
// False on an error.
bool retry(int socket, short events, int end) {
  if (errno == EINTR) return true;
  return (errno == EAGAIN || errno == EWOULDBLOCK) && isReady(socket, events, end);
}

void attach(msghdr& message, char* control, int file) {
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(entry), &file, sizeof(int));
}

void drop(msghdr& message, std::size_t sent) {
  while (message.msg_iovlen > 0 && sent >= message.msg_iov->iov_len) {
    sent -= message.msg_iov->iov_len;
    ++message.msg_iov;
    --message.msg_iovlen;
  }
  if (message.msg_iovlen == 0) return;
  message.msg_iov->iov_base = static_cast<std::byte*>(message.msg_iov->iov_base) + sent;
  message.msg_iov->iov_len -= sent;
}

// A message has at most one file. Closes any other; false if there was another.
bool takeFiles(const std::vector<int>& files, int& file) {
  if (files.empty()) return true;
  const int first = keepFirst(files);
  if (file >= 0) return close(first), false;
  file = first;
  return files.size() == 1;
}

// Receives exactly `bytes`, and at most one file with them.
bool receiveAll(int socket, void* data, std::size_t bytes, int& file, int end) {
  auto* at = static_cast<std::byte*>(data);
  std::vector<int> files;
  while (bytes > 0) {
    if (end >= 0 && !isReady(socket, POLLIN, end)) return false;
    const Received received = receiveWithFiles(socket, at, bytes, files);
    if (received.bytes < 0 && retry(socket, POLLIN, end)) continue;
    if (received.bytes <= 0 || !takeFiles(files, file) || !received.whole) return false;
    at += received.bytes;
    bytes -= static_cast<std::size_t>(received.bytes);
  }
  return true;
}

bool isPlausible(const MessageHeader& header) {
  return header.kind >= MessageKind::hello && header.kind <= kLastMessageKind &&
         header.bytes <= kMaxMessageBytes;
}

bool receiveParts(int socket, Message& message, int end) {
  if (!receiveAll(socket, &message.header, sizeof(message.header), message.file, end) ||
      !isPlausible(message.header))
    return false;
  message.payload.resize(message.header.bytes);
  return receiveAll(socket, message.payload.data(), message.payload.size(), message.file, end);
}

}  // namespace

bool sendMessage(int socket, MessageKind kind, std::uint64_t id, std::span<const std::byte> payload,
                 int file, int end) {
  if (payload.size() > kMaxMessageBytes) return errno = EMSGSIZE, false;
  MessageHeader header{kind, static_cast<std::uint32_t>(payload.size()), id};
  iovec parts[] = {{&header, sizeof(header)},
                   {const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (file >= 0) attach(message, control, file);
  while (message.msg_iovlen > 0) {
    const ssize_t sent = sendmsg(socket, &message, MSG_NOSIGNAL | (end >= 0 ? MSG_DONTWAIT : 0));
    if (sent < 0 && retry(socket, POLLOUT, end)) continue;
    if (sent < 0) return false;
    drop(message, static_cast<std::size_t>(sent));
    message.msg_control = nullptr;  // the file was sent with the first byte
    message.msg_controllen = 0;
  }
  return true;
}

bool receiveMessage(int socket, Message& message, int end) {
  message.header = {};
  message.payload.clear();
  message.file = -1;
  if (receiveParts(socket, message, end)) return true;
  if (message.file >= 0) close(message.file);
  message.file = -1;
  return false;
}

}  // namespace wire
