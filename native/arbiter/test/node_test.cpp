// What the arbiter makes of what workers say in their mailboxes, in virtual time.
#include "native/arbiter/node.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "native/arbiter/test/played.h"
#include "wire/test/check.h"

namespace {

using namespace arbiter;

std::array<int, 2> socketPair() {
  std::array<int, 2> ends;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

/// A worker of the node, and what it says.
class Worker {
 public:
  Worker(Node& node, pid_t pid, const std::string& id, Time now) {
    CHECK(node.setWorker(pid, id, now));
    node.join(connection_, pid, now);
    if (!played_.awaitMailbox()) std::abort();
  }
  ~Worker() { close(connection_); }
  Worker(const Worker&) = delete;

  Mailbox& mailbox() const { return *played_.mailbox; }
  void say(Node& node, Time now) const {
    node.look(connection_, now);
    node.update(now);
  }
  void waits(Node& node, Time now) const {
    mailbox().wants = 1;
    say(node, now);
  }
  void hasDrained(Node& node, Time now) const {
    mailbox().drained = mailbox().grant.load();
    say(node, now);
  }
  bool has(Grant grant) const { return played_.grant() == grant; }

 private:
  const std::array<int, 2> ends_ = socketPair();
  const int connection_ = ends_[0];
  test::PlayedWorker played_{ends_[1]};
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
  one.hasDrained(node, now);
  CHECK(other.has(Grant::window));
  other.mailbox().wants = 0;
  one.say(node, now += kMillisecond);
  CHECK(other.has(Grant::closed));
}

void testLowerOnesAreToldWhenOneIsExpected() {
  Node node({});
  Time now = kSecond;
  Terms urgent = half();
  urgent.priority = 10;
  node.put("first", urgent, now);
  node.put("lower", half(), now);
  const Worker first(node, 1, "first", now), lower(node, 2, "lower", now);
  lower.waits(node, now);
  const auto reserved = [](const Worker& worker) { return static_cast<Time>(worker.mailbox().reservedUntil.load()); };
  for (int i = 0; i < 5; ++i) {
    CHECK(reserved(lower) == 0);
    CHECK(first.mailbox().standby.load() == 1);
    now += 5 * kMillisecond;
    first.mailbox().standby = 0;
    first.mailbox().idleSince = 0;
    first.say(node, now);
    CHECK(lower.has(Grant::closed));
    lower.hasDrained(node, now);
    first.mailbox().idleSince = static_cast<std::uint64_t>(now);
    first.say(node, now + kMillisecond);
    if (first.has(Grant::closed)) first.hasDrained(node, now + kMillisecond);
    CHECK(lower.has(Grant::window));
  }
  now += 5 * kMillisecond;
  CHECK(static_cast<Time>(lower.mailbox().reservedFrom.load()) == now && reserved(lower) == now + kMillisecond / 10);
  CHECK(lower.mailbox().longestHeld.load() == 1'900'000);  // half of what is left of 4 ms when the gate has opened
  CHECK(reserved(first) == 0);
  // It does not come.
  node.update(now + kMillisecond);
  CHECK(reserved(lower) == 0);
}

/// One process that pauses is enough, and one of a former version, which says nothing, is none that pauses seldom.
void testThePaceOfSeveralWorkers() {
  const auto longestWindowWhere = [](Pace first, Pace second) {
    Node node({});
    Time now = kSecond;
    node.put("one", half(), now);
    node.put("other", half(), now);
    const std::array<Worker, 3> workers{Worker{node, 1, "one", now}, Worker{node, 2, "one", now}, Worker{node, 3, "other", now}};
    const std::array paces{first, second, Pace::steady};
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i].mailbox().pace = paces[i];
      workers[i].mailbox().idleSince = 0;
      workers[i].waits(node, now);
    }
    Time longest = 0;
    for (Time began = now; now < 2 * kSecond; now += kMillisecond) {
      node.update(now);
      for (const Worker& worker : workers) {
        if (worker.has(Grant::closed)) worker.hasDrained(node, now);
      }
      if (!workers[0].has(Grant::window)) began = now;
      longest = std::max(longest, now - began);
    }
    return longest;
  };
  CHECK(longestWindowWhere(Pace::steady, Pace::unknown) > 10 * kMillisecond);
  CHECK(longestWindowWhere(Pace::steady, Pace::pausing) <= 6 * kMillisecond);
  CHECK(longestWindowWhere(Pace::pausing, Pace::steady) <= 6 * kMillisecond);
  CHECK(longestWindowWhere(Pace::unknown, static_cast<Pace>(99)) <= 6 * kMillisecond);
}

}  // namespace

int main() {
  testThePaceOfSeveralWorkers();
  testLowerOnesAreToldWhenOneIsExpected();
  testAWindowIsKeptForThoseWhoAreWoken();
  return wire::test::checkedResult();
}
