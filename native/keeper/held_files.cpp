#include "native/keeper/held_files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "native/keeper/mapped_file.h"

namespace keeper {

namespace {

constexpr long kPidfdOpen = 434, kPidfdGetfd = 438;
constexpr int kPatienceMilliseconds = 10'000;
/// By contract with native/worker/descriptors.h.
constexpr int kConnection = 3;
constexpr std::string_view kArena = "/memfd:nvidia-virtual-arena";

std::string failed(const std::string& what) { return what + ": " + std::strerror(errno); }

std::string targetOf(const std::string& link) {
  char target[256];
  const ssize_t bytes = readlink(link.c_str(), target, sizeof target);
  return bytes > 0 ? std::string(target, static_cast<std::size_t>(bytes)) : std::string();
}

std::string linkOf(const std::string& process, int file) {
  return "/proc/" + process + "/fd/" + std::to_string(file);
}

/// 0 without the file.
ino_t inodeOf(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

/// The outer end of the socket pair of a parked process. -1 if it has none: the process is not
/// trusted.
int openDoor(pid_t process) {
  const int pidfd = static_cast<int>(syscall(kPidfdOpen, process, 0));
  const int door = static_cast<int>(syscall(kPidfdGetfd, pidfd, kOutside, 0));
  close(pidfd);
  int type = 0;
  socklen_t bytes = sizeof type;
  if (door >= 0 && getsockopt(door, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
      type == SOCK_SEQPACKET)
    return door;
  close(door);
  return -1;
}

bool awaits(int file, short events) {
  pollfd wait{file, events, 0};
  return poll(&wait, 1, kPatienceMilliseconds) > 0 && (wait.revents & events) != 0;
}

bool sendFiles(int door, Index first, const int* files, std::size_t count) {
  iovec part{&first, sizeof first};
  alignas(cmsghdr) char control[CMSG_SPACE(kFilesPerMessage * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* const entry = CMSG_FIRSTHDR(&message);
  entry->cmsg_level = SOL_SOCKET;
  entry->cmsg_type = SCM_RIGHTS;
  entry->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(entry), files, count * sizeof(int));
  return awaits(door, POLLOUT) &&
         sendmsg(door, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof first;
}

bool hasEnded(int file, short events) {
  pollfd wait{file, events, 0};
  return poll(&wait, 1, 0) > 0;
}

}  // namespace

std::string HeldFiles::take(pid_t process) {
  files_.fill(-1);
  if (!shared_.read(std::to_string(process).c_str())) return failed("its files cannot be listed");
  const int pidfd = static_cast<int>(syscall(kPidfdOpen, process, 0));
  if (pidfd < 0) return failed("pidfd_open");
  std::string sentence;
  for (std::size_t i = 0; i < shared_.mappings() && sentence.empty(); ++i)
    sentence = takeMapping(process, i);
  for (std::size_t i = 0; i < shared_.descriptors() && sentence.empty(); ++i)
    sentence = takeDescriptor(process, pidfd, i);
  close(pidfd);
  return sentence;
}

std::string HeldFiles::takeMapping(pid_t process, std::size_t index) {
  const int file = openMapped(process, shared_.mapping(index));
  files_[index] = file;
  if (file < 0) return failed("a file that it has mapped");
  arena_[index] = targetOf(linkOf("self", file)).starts_with(kArena) ? inodeOf(file) : 0;
  return {};
}

std::string HeldFiles::takeDescriptor(pid_t process, int pidfd, std::size_t index) {
  const int number = shared_.descriptor(index);
  const int file = static_cast<int>(syscall(kPidfdGetfd, pidfd, number, 0));
  files_[shared_.mappings() + index] = file;
  return file < 0 ? failed(linkOf(std::to_string(process), number)) : std::string();
}

bool HeldFiles::areHeldBy(pid_t process) const {
  if (shared_.descriptors() == 0) return false;
  const std::string theirs = targetOf(linkOf(std::to_string(process), shared_.descriptor(0)));
  return !theirs.empty() && theirs == targetOf(linkOf("self", files_[shared_.mappings()]));
}

/// A pidfd is readable after the end of its process. There is none for a client of another pid
/// namespace, so its connection counts, too.
bool HeldFiles::clientIsGone() const {
  for (std::size_t i = 0; i < shared_.descriptors(); ++i) {
    const int file = files_[shared_.mappings() + i];
    if (shared_.descriptor(i) == kConnection && hasEnded(file, 0)) return true;
    if (targetOf(linkOf("self", file)) == "anon_inode:[pidfd]" && hasEnded(file, POLLIN))
      return true;
  }
  return false;
}

void HeldFiles::dropArenas() {
  for (std::size_t i = 0; i < shared_.mappings(); ++i)
    if (arena_[i] != 0 && files_[i] >= 0) close(std::exchange(files_[i], -1));
}

bool HeldFiles::putArena(ino_t inode, int file) {
  bool put = false;
  for (std::size_t i = 0; i < shared_.mappings(); ++i) {
    if (arena_[i] != inode || files_[i] >= 0) continue;
    files_[i] = fcntl(file, F_DUPFD_CLOEXEC, 0);
    put = files_[i] >= 0;
  }
  return put;
}

std::string HeldFiles::giveTo(pid_t process, int answer) const {
  const int* const end = files_.data() + shared_.all();
  if (std::find(files_.data(), end, -1) != end) return "an arena is missing";
  const int door = openDoor(process);
  if (door < 0) return "the process does not wait for its files";
  char done = 0;
  const bool given = sendAll(door, answer) && awaits(door, POLLIN) &&
                     recv(door, &done, 1, MSG_DONTWAIT) == 1 && done == 'k';
  close(door);
  return given ? std::string() : "the process does not take its files";
}

bool HeldFiles::sendAll(int door, int answer) const {
  for (std::size_t i = 0; i < shared_.all(); i += kFilesPerMessage)
    if (!sendFiles(door, static_cast<Index>(i), &files_[i],
                   std::min(kFilesPerMessage, shared_.all() - i)))
      return false;
  return sendFiles(door, static_cast<Index>(shared_.all()), &answer, 1);
}

}  // namespace keeper
