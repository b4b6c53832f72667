// Commands to a worker, as gpu-proxy sends them (native/worker/session/control.h).
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace worker::test {

/// Sends a command. Returns where its answer comes.
inline int sendCommand(int socket, std::string text) {
  int ends[2];
  CHECK(pipe2(ends, O_CLOEXEC) == 0);
  iovec part{text.data(), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(entry), &ends[1], sizeof(int));
  CHECK(sendmsg(socket, &message, 0) == static_cast<ssize_t>(text.size()));
  close(ends[1]);
  return ends[0];
}

inline std::string awaitAnswer(int pipe) {
  char bytes[256];
  const ssize_t count = read(pipe, bytes, sizeof bytes);
  close(pipe);
  return {bytes, static_cast<std::size_t>(count)};
}

}  // namespace worker::test
