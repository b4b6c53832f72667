// Two processes that pass file descriptors to each other, as programs pass what they export.
#pragma once

#include <cstring>
#include <utility>

#include "by_name.h"
#include "processes.h"

union FileMessage {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

inline msghdr messageOf(iovec& data, FileMessage& control) {
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  return message;
}

/// Sends a copy of the descriptor and closes it here.
inline void giveFile(const Processes& processes, int file) {
  char byte = 'f';
  iovec data{&byte, 1};
  FileMessage control{};
  msghdr message = messageOf(data, control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  if (sendmsg(processes.socket(), &message, 0) != 1) _exit(2);
  close(file);
}

inline int takeFile(const Processes& processes) {
  char byte = 0;
  iovec data{&byte, 1};
  FileMessage control{};
  msghdr message = messageOf(data, control);
  if (recvmsg(processes.socket(), &message, MSG_CMSG_CLOEXEC) != 1) _exit(2);
  int file = -1;
  if (const cmsghdr* header = CMSG_FIRSTHDR(&message))
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

/// A call takes a descriptor in the place of a pointer.
inline void* asPointer(int file) { return reinterpret_cast<void*>(static_cast<std::intptr_t>(file)); }
