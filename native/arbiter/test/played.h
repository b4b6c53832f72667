// The other ends of an arbiter's sockets, as a test plays them: the proxy's control connection, and
// workers.
#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "native/arbiter/mailbox.h"
#include "native/arbiter/schedule.h"
#include "test/unit/waiting.h"

namespace arbiter::test {

using unit::comesTrue;

inline Time monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

/// Tries until somebody listens.
inline int connectTo(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
  int file = -1;
  comesTrue([&] {
    file = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(file, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) return true;
    close(file);
    file = -1;
    return false;
  });
  if (file < 0) std::abort();
  return file;
}

class Control {
 public:
  explicit Control(const std::string& path) : file_(connectTo(path)) { say("control 1"); }
  ~Control() { close(file_); }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  void say(const std::string& line) {
    const std::string text = line + '\n';
    if (send(file_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size()))
      std::abort();
  }
  /// The next line; empty at the connection's end.
  std::string hear() {
    for (;;) {
      if (const auto end = heard_.find('\n'); end != std::string::npos) {
        const std::string line = heard_.substr(0, end);
        heard_.erase(0, end + 1);
        return line;
      }
      char bytes[4096];
      const ssize_t count = recv(file_, bytes, sizeof bytes, 0);
      if (count <= 0) return "";
      heard_.append(bytes, static_cast<std::size_t>(count));
    }
  }
  /// Waits until everything that was said is done.
  std::map<std::string, TimeUse> figures() {
    say("figures");
    std::map<std::string, TimeUse> all;
    for (std::string line = hear(); line != "end" && !line.empty(); line = hear()) {
      char id[64];
      long granted = 0, waited = 0, overrun = 0;
      unsigned long windows = 0;
      if (std::sscanf(line.c_str(), "figures %63s %ld %ld %ld %lu", id, &granted, &waited, &overrun,
                      &windows) == 5)
        all[id] = {granted, waited, overrun, windows};
      else
        all[line] = {};
    }
    return all;
  }

 private:
  int file_;
  std::string heard_;
};

/// A worker's end of its connection and mailbox.
class PlayedWorker {
 public:
  explicit PlayedWorker(const std::string& path) : PlayedWorker(connectTo(path)) {
    send(connection_, "worker 1\n", 9, MSG_NOSIGNAL);
  }
  /// Where no server is in between.
  explicit PlayedWorker(int connection) : connection_(connection) {}
  ~PlayedWorker() { close(connection_); }
  PlayedWorker(const PlayedWorker&) = delete;
  PlayedWorker& operator=(const PlayedWorker&) = delete;

  Mailbox* mailbox = nullptr;

  /// Waits for the mailbox; false when the arbiter ended the connection.
  bool awaitMailbox() {
    char byte;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(connection_, &message, 0) != 1 || CMSG_FIRSTHDR(&message) == nullptr) return false;
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    mailbox = static_cast<Mailbox*>(
        mmap(nullptr, kMailboxBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    return true;
  }
  int file = -1;

  void poke() const { send(connection_, "w", 1, MSG_NOSIGNAL | MSG_DONTWAIT); }
  Grant grant() const { return grantOf(mailbox->grant.load()); }
  /// Stands at the gate until it is let in. False if the arbiter has ended the connection.
  bool want() const {
    for (std::uint32_t word = mailbox->grant.load(); grantOf(word) == Grant::closed;
         word = mailbox->grant.load()) {
      if (ended()) return false;
      mailbox->wants.store(1);
      poke();
      awaitChange(word);
    }
    mailbox->idleSince.store(0);
    mailbox->wants.store(0);
    return true;
  }
  void sayDrained() const {
    mailbox->drained.store(mailbox->grant.load());
    poke();
  }
  /// Always has work: when the gate closes, the next piece stands there before the last one ends.
  void saturate() const {
    while (want()) {
      for (std::uint32_t word = mailbox->grant.load(); grantOf(word) != Grant::closed;
           word = mailbox->grant.load())
        awaitChange(word);
      mailbox->wants.store(1);
      poke();
      sayDrained();
    }
  }
  /// True once the arbiter has ended the connection.
  bool ended() const {
    char bytes[64];
    const ssize_t count = recv(connection_, bytes, sizeof bytes, MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN);
  }

 private:
  void awaitChange(std::uint32_t word) const {
    const timespec timeout{0, 100'000'000};
    syscall(SYS_futex, &mailbox->grant, FUTEX_WAIT, word, &timeout, nullptr, 0);
  }

  int connection_;
};

/// A process of its own that plays something; killed with this object.
class Child {
 public:
  template <class Body>
  explicit Child(Body body) : pid(fork()) {
    if (pid != 0) return;
    body();
    _exit(0);
  }
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void kill() {
    if (!ended_) ::kill(pid, SIGKILL), waitpid(pid, nullptr, 0);
    ended_ = true;
  }
  int wait() {
    int status = 0;
    waitpid(pid, &status, 0);
    ended_ = true;
    return status;
  }
  const pid_t pid;

 private:
  bool ended_ = false;
};

}  // namespace arbiter::test
