#include "native/worker/session/parking.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>

#include "wire/wait.h"

namespace worker {

namespace {

using keeper::Index;
using keeper::kFilesPerMessage;
using keeper::kInside;
using keeper::kOutside;

constexpr std::uint64_t kPatience = 2'000'000'000;
constexpr useconds_t kPollMicroseconds = 200;
constexpr std::size_t kMostThreads = 8192;
/// A thread blocks all signals while it starts another one. So it has to look the same so often.
constexpr int kLooks = 10;

int stopSignal() { return SIGRTMIN + 11; }

/// The C library has gettid only since 2.30.
pid_t threadId() { return static_cast<pid_t>(syscall(SYS_gettid)); }

/// What the handler of the signal uses.
std::atomic<std::uint32_t> stopped{0};
std::atomic<std::uint32_t> standing{0};
std::array<std::atomic<pid_t>, kMostThreads> standingThreads;

void standStill(int) {
  const int error = errno;
  if (stopped.load() != 0) {
    const std::uint32_t index = standing.fetch_add(1);
    if (index < kMostThreads) standingThreads[index] = threadId();
    while (stopped.load() != 0)
      syscall(SYS_futex, &stopped, FUTEX_WAIT_PRIVATE, 1, nullptr, nullptr, 0);
    standing.fetch_sub(1);
  }
  errno = error;
}

bool stands(pid_t thread) {
  const std::uint32_t count = std::min<std::uint32_t>(standing.load(), kMostThreads);
  for (std::uint32_t i = 0; i < count; ++i)
    if (standingThreads[i] == thread) return true;
  return false;
}

/// Whether the thread would never handle the signal, or has ended.
bool blocksSignal(pid_t thread) {
  char path[64], text[2048];
  std::snprintf(path, sizeof path, "/proc/self/task/%d/status", thread);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return true;
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  text[std::max<ssize_t>(bytes, 0)] = '\0';
  const char* const mask = std::strstr(text, "SigBlk:");
  if (mask == nullptr) return true;
  return (std::strtoull(mask + 7, nullptr, 16) >> (stopSignal() - 1) & 1) != 0;
}

/// Calls body(thread) for each other thread. False if they cannot be listed.
template <class Body>
bool eachThread(Body body) {
  const int directory = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  alignas(dirent64) char entries[4096];
  ssize_t bytes = 0;
  while ((bytes = syscall(SYS_getdents64, directory, entries, sizeof entries)) > 0) {
    for (ssize_t at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
      const pid_t thread = std::atoi(entry->d_name);
      if (thread > 0 && thread != threadId()) body(thread);
      at += entry->d_reclen;
    }
  }
  close(directory);
  return bytes == 0;
}

void say(int file, std::string_view line) {
  [[maybe_unused]] const auto written = write(file, line.data(), line.size());
}

struct Message {
  ssize_t bytes = -1;
  std::array<char, 256> text;
  std::array<int, kFilesPerMessage> file;
  std::size_t files = 0;
};

/// Takes the message that is there.
void receive(int socket, Message& message) {
  iovec into{message.text.data(), message.text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kFilesPerMessage * sizeof(int))];
  msghdr header{};
  header.msg_iov = &into;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  message.files = 0;
  message.bytes = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (message.bytes < 0) return;
  const cmsghdr* entry = CMSG_FIRSTHDR(&header);
  if (entry == nullptr || entry->cmsg_type != SCM_RIGHTS) return;
  message.files = (entry->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  std::memcpy(message.file.data(), CMSG_DATA(entry), message.files * sizeof(int));
}

}  // namespace

/// A socket pair with fixed numbers.
bool Parking::prepare() {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const bool free = fcntl(kInside, F_GETFD) < 0 && fcntl(kOutside, F_GETFD) < 0 &&
                    dup3(pair[0], kInside, O_CLOEXEC) >= 0 &&
                    dup3(pair[1], kOutside, O_CLOEXEC) >= 0;
  close(pair[0]);
  close(pair[1]);
  return free;
}

bool Parking::stop() {
  struct sigaction action {};
  action.sa_handler = standStill;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  if (!prepare() || sigaction(stopSignal(), &action, nullptr) != 0) return false;
  for (std::atomic<pid_t>& thread : standingThreads) thread = 0;  // of an earlier time
  stopped = 1;
  if (stopAll(wire::monotonicNanoseconds() + kPatience) && shared_.read("self")) return true;
  proceed();
  return false;
}

/// A thread that is not stopped yet may start others.
bool Parking::stopAll(std::uint64_t deadline) {
  for (int looks = 0; wire::monotonicNanoseconds() < deadline; usleep(kPollMicroseconds)) {
    bool all = true;
    const bool listed = eachThread([&](pid_t thread) {
      if (stands(thread) || blocksSignal(thread)) return;
      all = false;
      syscall(SYS_tgkill, getpid(), thread, stopSignal());
    });
    if (!listed) return false;
    looks = all ? looks + 1 : 0;
    if (looks == kLooks) return true;
  }
  return false;
}

void Parking::proceed() {
  stopped = 0;
  syscall(SYS_futex, &stopped, FUTEX_WAKE_PRIVATE, kMostThreads, nullptr, nullptr, 0);
  while (standing.load() != 0) usleep(kPollMicroseconds);
  close(kInside);
  close(kOutside);
}

int Parking::await(int commands) {
  for (int answer = -1;;) {
    pollfd waits[] = {{kInside, POLLIN, 0}, {detached_ ? -1 : commands, POLLIN, 0}};
    if (poll(waits, std::size(waits), -1) < 0) continue;
    if (waits[0].revents != 0 && attach(answer)) return answer;
    if (waits[1].revents != 0 && obey(commands, answer)) return answer;
  }
}

/// Whether the command ends the wait.
bool Parking::obey(int commands, int& answer) {
  Message message;
  receive(commands, message);
  if (message.bytes < 0 || message.files == 0) return false;
  const std::string_view word(message.text.data(), static_cast<std::size_t>(message.bytes));
  answer = message.file[0];
  for (std::size_t i = 1; i < message.files; ++i) close(message.file[i]);
  if (word == "unpark") return true;
  if (word == "detach") detach();
  say(answer, word == "detach" ? "done\n" : "error it is parked\n");
  close(answer);
  return false;
}

/// Nothing else takes the addresses and the numbers meanwhile.
void Parking::detach() {
  const int nothing = eventfd(0, EFD_CLOEXEC);
  for (std::size_t i = 0; i < shared_.mappings(); ++i) {
    const keeper::SharedMapping& mapping = shared_.mapping(i);
    mmap(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  for (std::size_t i = 0; i < shared_.descriptors(); ++i)
    dup3(nothing, shared_.descriptor(i), O_CLOEXEC);
  close(nothing);
  [[maybe_unused]] const int moved = chdir("/");
  back_ = 0;
  detached_ = true;
}

/// Takes files that the keeper sends. True with the last one.
bool Parking::attach(int& answer) {
  Message message;
  receive(kInside, message);
  Index first = 0;
  if (message.bytes != sizeof first) return false;
  std::memcpy(&first, message.text.data(), sizeof first);
  for (std::size_t i = 0; i < message.files; ++i) {
    const int file = message.file[i];
    if (first + i == shared_.all() && back_ == shared_.all()) {
      answer = file;
      detached_ = false;
      send(kInside, "k", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
      return true;
    }
    putBack(static_cast<Index>(first + i), file);
    close(file);
  }
  return false;
}

/// Without the file, the session cannot go on.
void Parking::putBack(Index index, int file) {
  bool done = false;
  if (index < shared_.mappings()) {
    const keeper::SharedMapping& mapping = shared_.mapping(index);
    done = mmap(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin,
                mapping.protection, MAP_SHARED | MAP_FIXED, file,
                static_cast<off_t>(mapping.offset)) != MAP_FAILED;
  } else if (index < shared_.all()) {
    done = dup3(file, shared_.descriptor(index - shared_.mappings()), O_CLOEXEC) >= 0;
  }
  if (!done) _exit(1);
  ++back_;
}

}  // namespace worker
