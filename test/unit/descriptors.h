// Messages with descriptors, for tests of what receives them.
#pragma once

#include <sys/socket.h>

#include <cstring>
#include <span>
#include <vector>

namespace unit {

/// Sends the bytes and the files in one message. As sendmsg(2): the number of bytes, or -1.
inline ssize_t sendWithFiles(int socket, std::span<const std::byte> bytes,
                             std::span<const int> files) {
  std::vector<std::byte> control(CMSG_SPACE(files.size_bytes()));
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(files.size_bytes());
  std::memcpy(CMSG_DATA(entry), files.data(), files.size_bytes());
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

}  // namespace unit
