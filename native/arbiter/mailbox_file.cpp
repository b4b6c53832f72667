#include "native/arbiter/mailbox_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "wire/anonymous_file.h"

namespace arbiter {

int createMailbox(Mailbox*& mailbox) {
  const int file =
      wire::createAnonymousFile("nvidia-virtual-mailbox", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return -1;
  void* page = MAP_FAILED;
  if (ftruncate(file, kMailboxBytes) == 0 &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    page = mmap(nullptr, kMailboxBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return close(file), -1;
  mailbox = static_cast<Mailbox*>(page);
  mailbox->magic = kMailboxMagic;
  mailbox->version = kMailboxVersion;
  return file;
}

bool sendMailbox(int connection, int file) {
  char byte = 'm';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof file)] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  return sendmsg(connection, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

}  // namespace arbiter
