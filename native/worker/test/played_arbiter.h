// The arbiter's end of the connection of one worker, played by a test.
#pragma once

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "native/arbiter/mailbox_file.h"
#include "test/unit/program.h"
#include "test/unit/waiting.h"
#include "wire/wait.h"

namespace worker::test {

/// The test sets the grant.
class PlayedArbiter {
 public:
  explicit PlayedArbiter(const std::string& path)
      : path_(path), listener_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
    unlink(path.c_str());
    if (bind(listener_, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 ||
        listen(listener_, 4) != 0)
      std::abort();
  }
  ~PlayedArbiter() {
    close(connection_);
    close(listener_);
    unlink(path_.c_str());
    if (mailbox != nullptr) munmap(mailbox, arbiter::kMailboxBytes);
  }

  arbiter::Mailbox* mailbox = nullptr;

  /// Accepts the worker and sends its mailbox.
  void introduce(arbiter::Grant grant, std::uint32_t version = arbiter::kMailboxVersion) {
    connection_ = accept(listener_, nullptr, nullptr);
    char first[16];
    CHECK(recv(connection_, first, 9, MSG_WAITALL) == 9);
    CHECK(std::memcmp(first, "worker 1\n", 9) == 0);
    const int file = arbiter::createMailbox(mailbox);
    if (file < 0) std::abort();
    mailbox->version = version;
    mailbox->grant = arbiter::nextWord(0, grant);
    mailbox->queueNanoseconds = 2'000'000;
    CHECK(arbiter::sendMailbox(connection_, file));
    close(file);
  }
  /// Accepts the worker and sends nothing.
  void hang() { connection_ = accept(listener_, nullptr, nullptr); }
  /// Returns the new word. The worker is not woken when its gate opens.
  std::uint32_t set(arbiter::Grant grant) {
    const std::uint32_t word = arbiter::nextWord(mailbox->grant.load(), grant);
    mailbox->grant.store(word);
    wire::futexWakeAll(mailbox->grant);
    if (grant != arbiter::Grant::open) send(connection_, "g", 1, MSG_NOSIGNAL);
    return word;
  }
  bool drained(std::uint32_t word) const {
    return unit::comesTrue([&] { return mailbox->drained.load() == word; });
  }
  /// Waits until the gate's thread has looked at the closed gate again, and answered if it drained.
  /// True if it did not.
  bool staysUndrained(std::uint32_t word) const {
    for (int looks = 0; looks < 3; ++looks) {
      mailbox->busyContexts = kNotLooked;
      unit::comesTrue([&] {
        return mailbox->busyContexts.load() != kNotLooked || mailbox->drained.load() == word;
      });
    }
    return mailbox->drained.load() != word;
  }
  /// Waits for the worker to announce a change.
  bool hears() const {
    char byte;
    return recv(connection_, &byte, 1, 0) == 1;
  }

 private:
  static constexpr std::uint32_t kNotLooked = 99;
  std::string path_;
  int listener_;
  int connection_ = -1;
};

}  // namespace worker::test
