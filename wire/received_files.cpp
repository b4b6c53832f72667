#include "wire/received_files.h"

#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace wire {

namespace {

constexpr std::size_t kMostFiles = 8;

void append(const cmsghdr& entry, std::vector<int>& files) {
  const std::size_t before = files.size();
  files.resize(before + (entry.cmsg_len - CMSG_LEN(0)) / sizeof(int));
  std::memcpy(files.data() + before, CMSG_DATA(&entry), (files.size() - before) * sizeof(int));
}

}  // namespace

Received receiveWithFiles(int socket, void* data, std::size_t bytes, std::vector<int>& files,
                          int flags) {
  files.clear();
  iovec into{data, bytes};
  alignas(cmsghdr) char control[CMSG_SPACE(kMostFiles * sizeof(int))];
  msghdr message{};
  message.msg_iov = &into;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t received = 0;
  do {
    received = recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0) return {received, false};
  for (cmsghdr* entry = CMSG_FIRSTHDR(&message); entry != nullptr;
       entry = CMSG_NXTHDR(&message, entry)) {
    if (entry->cmsg_level == SOL_SOCKET && entry->cmsg_type == SCM_RIGHTS) append(*entry, files);
  }
  return {received, (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0};
}

int keepFirst(const std::vector<int>& files) {
  for (std::size_t i = 1; i < files.size(); ++i) close(files[i]);
  return files.empty() ? -1 : files.front();
}

}  // namespace wire
