// What the arbiter makes of what workers say in their mailboxes, in virtual time.
#include "native/arbiter/node.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

#include "wire/test/check.h"

namespace {

using namespace arbiter;

/// A worker's end of the connection, and the mailbox that came over it.
class Worker {
 public:
  Worker(Node& node, pid_t pid, const std::string& id, Time now) {
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0);
    CHECK(node.setWorker(pid, id, now));
    node.join(ends_[0], pid, now);
    mailbox = receive();
  }
  ~Worker() {
    munmap(mailbox, kMailboxBytes);
    for (const int end : ends_) close(end);
  }
  Worker(const Worker&) = delete;

  void say(Node& node, Time now) const {
    node.look(ends_[0], now);
    node.update(now);
  }
  void waits(Node& node, Time now) const {
    mailbox->wants = 1;
    say(node, now);
  }
  bool has(Grant grant) const { return grantOf(mailbox->grant.load()) == grant; }

  Mailbox* mailbox = nullptr;

 private:
  Mailbox* receive() const {
    char byte;
    iovec data{&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    if (recvmsg(ends_[1], &message, 0) <= 0 || message.msg_controllen == 0) std::abort();
    int file = -1;
    std::memcpy(&file, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof file);
    void* page = mmap(nullptr, kMailboxBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return static_cast<Mailbox*>(page);
  }

  int ends_[2];
};

Terms half() { return {.weight = 50, .gpus = {"GPU-0"}}; }

/// On a loaded machine it takes a while until threads that stood at the gate come in: their window is kept for them, but not for ever.
void testAWindowIsKeptForThoseWhoAreWoken() {
  Node node({});
  Time now = kSecond;
  node.put("one", half(), now);
  node.put("other", half(), now);
  const Worker one(node, 1, "one", now), other(node, 2, "other", now);
  one.waits(node, now += kMillisecond);
  other.waits(node, now);
  CHECK(one.has(Grant::window) && other.has(Grant::closed));
  other.say(node, now += kMillisecond);
  CHECK(one.has(Grant::window));
  other.say(node, now += kMillisecond);
  CHECK(one.has(Grant::closed));

  // Once they have come in and have nothing more to do, the gap counts.
  one.mailbox->drained = one.mailbox->grant.load();
  one.say(node, now);
  CHECK(other.has(Grant::window));
  other.mailbox->wants = 0;
  one.say(node, now += kMillisecond);
  CHECK(other.has(Grant::closed));
}

}  // namespace

int main() {
  testAWindowIsKeptForThoseWhoAreWoken();
  return wire::test::checkedResult();
}
