#include "wire/file_offers.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>

namespace wire {

namespace {

constexpr timeval kPatience{5, 0};

/// Returns the size of the address; 0 if it is too long.
socklen_t makeAddress(const std::string& text, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  if (text.empty() || text.size() >= sizeof address.sun_path) return 0;
  std::memcpy(address.sun_path, text.data(), text.size());
  const bool abstract = text.front() == '@';
  if (abstract) address.sun_path[0] = '\0';
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size() + (abstract ? 0 : 1));
}

/// A peer that stalls must not block this process for ever.
int makeSocket() {
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made < 0) return -1;
  setsockopt(made, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  setsockopt(made, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
  return made;
}

bool ofSameUser(int connection) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == geteuid();
}

/// One byte, with the file as its ancillary data.
union FileMessage {
  cmsghdr header;
  char space[CMSG_SPACE(sizeof(int))];
};

void sendFile(int connection, int file) {
  char byte = 0;
  iovec data{&byte, 1};
  FileMessage control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof file);
  std::memcpy(CMSG_DATA(header), &file, sizeof file);
  sendmsg(connection, &message, MSG_NOSIGNAL);
}

int receiveFile(int connection) {
  char byte = 0;
  iovec data{&byte, 1};
  FileMessage control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.space;
  message.msg_controllen = sizeof control.space;
  if (recvmsg(connection, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  int file = -1;
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
      header->cmsg_len == CMSG_LEN(sizeof file))
    std::memcpy(&file, CMSG_DATA(header), sizeof file);
  return file;
}

}  // namespace

bool makeFileKey(FileKey& key) {
  return syscall(SYS_getrandom, key.data(), key.size(), 0) == static_cast<long>(key.size());
}

bool FileOffers::open() {
  if (opened_) return true;
  sockaddr_un address{};
  const socklen_t bytes = makeAddress(address_, address);
  const int listening = bytes > 0 ? makeSocket() : -1;
  if (listening < 0) return false;
  if (address_.front() != '@') unlink(address_.c_str());  // of a dead process
  if (bind(listening, reinterpret_cast<sockaddr*>(&address), bytes) != 0 ||
      listen(listening, 64) != 0) {
    close(listening);
    return false;
  }
  const timeval unlimited{};
  setsockopt(listening, SOL_SOCKET, SO_RCVTIMEO, &unlimited, sizeof unlimited);
  std::thread([this, listening] { answer(listening); }).detach();
  return opened_ = true;
}

bool FileOffers::offer(const FileKey& key, int file) {
  const std::lock_guard lock(mutex_);
  if (open() && files_.emplace(key, file).second) return true;
  close(file);
  return false;
}

void FileOffers::withdraw(const FileKey& key) {
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(key);
  if (found == files_.end()) return;
  close(found->second);
  files_.erase(found);
}

void FileOffers::answer(int socket) {
  for (;;) {
    const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) {
      if (errno == EMFILE || errno == ENFILE) usleep(10'000);  // accept() would return at once
      continue;
    }
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    answerOne(connection);
    close(connection);
  }
}

/// Other users are refused: an abstract socket can be reached by all of them.
void FileOffers::answerOne(int connection) {
  FileKey key;
  if (!ofSameUser(connection) ||
      recv(connection, key.data(), key.size(), MSG_WAITALL) != static_cast<ssize_t>(key.size()))
    return;
  const std::lock_guard lock(mutex_);
  const auto found = files_.find(key);
  if (found != files_.end()) sendFile(connection, found->second);
}

int fetchFile(const std::string& address, const FileKey& key) {
  sockaddr_un to{};
  const socklen_t bytes = makeAddress(address, to);
  const int connection = bytes > 0 ? makeSocket() : -1;
  if (connection < 0) return -1;
  int file = -1;
  if (connect(connection, reinterpret_cast<sockaddr*>(&to), bytes) == 0 && ofSameUser(connection) &&
      send(connection, key.data(), key.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(key.size()))
    file = receiveFile(connection);
  close(connection);
  return file;
}

}  // namespace wire
