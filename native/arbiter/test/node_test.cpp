// What the node does with what workers write into their mailboxes, in virtual time.
#include "native/arbiter/node.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <vector>

#include "native/arbiter/test/played.h"

namespace {

using namespace arbiter;

std::array<int, 2> socketPair() {
  std::array<int, 2> ends;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  return ends;
}

/// A worker of the node, with what it writes into its mailbox.
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

// On a loaded machine, threads at the gate need a while to come in.
TEST_CASE("a window is kept a while for threads that have been woken") {
  Node node({});
  Time now = kSecond;
  node.put("one", half(), now);
  node.put("other", half(), now);
  const Worker one(node, 1, "one", now), other(node, 2, "other", now);
  one.waits(node, now += kMillisecond);
  other.waits(node, now);
  CHECK(one.has(Grant::window));
  CHECK(other.has(Grant::closed));
  other.say(node, now += kMillisecond);
  CHECK(one.has(Grant::window));
  other.say(node, now += kMillisecond);
  CHECK(one.has(Grant::closed));

  // A woken thread that has submitted and has nothing more to do gives the window up.
  one.hasDrained(node, now);
  CHECK(other.has(Grant::window));
  other.mailbox().wants = 0;
  one.say(node, now += kMillisecond);
  CHECK(other.has(Grant::closed));
}

TEST_CASE("tenants of lower priority are told when work of higher priority is expected") {
  Node node({});
  Time now = kSecond;
  Terms urgent = half();
  urgent.priority = 10;
  node.put("first", urgent, now);
  node.put("lower", half(), now);
  const Worker first(node, 1, "first", now), lower(node, 2, "lower", now);
  lower.waits(node, now);
  const auto reserved = [](const Worker& worker) {
    return static_cast<Time>(worker.mailbox().reservedUntil.load());
  };
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
  CHECK(static_cast<Time>(lower.mailbox().reservedFrom.load()) == now);
  CHECK(reserved(lower) == now + kMillisecond / 10);
  CHECK(lower.mailbox().longestHeld.load() ==
        1'900'000);  // half of what is left of 4 ms when the gate has opened
  CHECK(reserved(first) == 0);
  // The expected work does not come.
  node.update(now + kMillisecond);
  CHECK(reserved(lower) == 0);
}

TEST_CASE("without an arbiter, the sessions of a fixed share keep to the share together") {
  Node node({});
  const Time now = kSecond;
  Terms fixed = half();
  fixed.policy = Policy::fixed;
  node.put("fixed", fixed, now);
  node.put("burst", half(), now);
  fixed.weight = 100;
  node.put("whole", fixed, now);
  const Worker first(node, 1, "fixed", now), burst(node, 3, "burst", now),
      whole(node, 4, "whole", now);
  node.update(now);
  CHECK(first.mailbox().shareWithoutArbiter.load() == 500'000);
  CHECK(burst.mailbox().shareWithoutArbiter.load() == 0);
  CHECK(whole.mailbox().shareWithoutArbiter.load() == 0);
  const Worker second(node, 2, "fixed", now);
  node.update(now);
  CHECK(first.mailbox().shareWithoutArbiter.load() == 250'000);
  CHECK(second.mailbox().shareWithoutArbiter.load() == 250'000);
}

// The other sessions of their allocation are not.
TEST_CASE("sessions whose work runs on are told once to end") {
  Node node({});
  Time now = kSecond;
  node.setOverrunLimit(3 * kSecond);
  node.put("one", half(), now);
  node.put("other", half(), now);
  const Worker stubborn(node, 1, "one", now), quiet(node, 2, "one", now),
      other(node, 3, "other", now);
  stubborn.waits(node, now);
  stubborn.mailbox().wants = 0;
  other.waits(node, now += kMillisecond);
  while (!stubborn.has(Grant::closed)) other.say(node, now += kMillisecond);
  quiet.hasDrained(node, now);
  stubborn.mailbox().busyContexts = 3;
  while (!other.has(Grant::window)) other.say(node, now += kMillisecond);
  const auto charged = [&] { return node.figures(now)["one"].overrun; };
  const Time before = charged();
  CHECK(stubborn.mailbox().overdue.load() == 0);
  node.update(now += 4 * kSecond);
  CHECK(charged() - before == 3 * kSecond);  // three of the four contexts that run
  CHECK(stubborn.mailbox().overdue.load() >= 3);
  CHECK(quiet.mailbox().overdue.load() == 0);
  CHECK(other.mailbox().overdue.load() == 0);
  stubborn.mailbox().overdue = 0;
  node.update(now += 4 * kSecond);
  CHECK(stubborn.mailbox().overdue.load() == 0);
}

// A worker of a former version does not tell its pace; it does not count as one that seldom pauses.
TEST_CASE("an allocation pauses if one of its processes does") {
  const auto longestWindowWhere = [](Pace first, Pace second) {
    Node node({});
    Time now = kSecond;
    node.put("one", half(), now);
    node.put("other", half(), now);
    const std::array<Worker, 3> workers{Worker{node, 1, "one", now}, Worker{node, 2, "one", now},
                                        Worker{node, 3, "other", now}};
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

struct TwoAllocations {
  TwoAllocations() {
    node.put("one", half(), now);
    node.put("other", half(), now);
  }
  Node node{{}};
  Time now = kSecond;
};

/// Both pause often. One, with two sessions, has a window that may end at a pause from now on. Its
/// sessions submitted work long ago, which runs.
struct Pausing : TwoAllocations {
  Pausing() {
    for (const Worker* worker : {&first, &second, &other}) worker->mailbox().pace = Pace::pausing;
    for (int turn = 0; turn < 8 || !first.has(Grant::window); ++turn) {
      first.waits(node, now += kMillisecond);
      other.waits(node, now);
      for (const Worker* worker : {&first, &second, &other}) {
        if (worker->has(Grant::closed)) worker->hasDrained(node, now);
      }
      node.update(now += Timing{}.window);
    }
    for (const Worker* worker : {&first, &second}) {
      worker->mailbox().wants = 0;
      worker->mailbox().idleSince = 0;
      worker->mailbox().submittedAt = static_cast<std::uint64_t>(now);
    }
    other.waits(node, now);
    now += Timing{}.pausingTurn / 2;
  }
  bool ends(Time at) {
    node.update(at);
    return first.has(Grant::closed);
  }
  const Worker first{node, 1, "one", now}, second{node, 2, "one", now},
      other{node, 3, "other", now};
};

TEST_CASE("a window ends at a pause of all sessions, first at one that hides the handover") {
  const auto at = [](Time time) { return static_cast<std::uint64_t>(time); };
  Pausing rests;
  CHECK(rests.ends(rests.now));
  Pausing submits;
  submits.second.mailbox().submittedAt = at(submits.now - 10 * kMicrosecond);
  CHECK(!submits.ends(submits.now));
  Pausing idle;
  for (const Worker* worker : {&idle.first, &idle.second})
    worker->mailbox().idleSince = at(idle.now - 10 * kMicrosecond);
  CHECK(!idle.ends(idle.now));
  CHECK(idle.ends(idle.now + Timing{}.runningPause));
  Pausing waited;  // its sessions have waited for their work, and the gates have not looked yet
  for (const Worker* worker : {&waited.first, &waited.second})
    worker->mailbox().waitedAt = at(waited.now - 10 * kMicrosecond);
  CHECK(!waited.ends(waited.now));
  CHECK(waited.ends(waited.now + Timing{}.runningPause));
  Pausing partly;  // one of the two has work on the GPU
  partly.second.mailbox().idleSince = at(partly.now - 10 * kMicrosecond);
  CHECK(partly.ends(partly.now));
}

/// A tenant that always has work, of which 0.3 ms is left when the gate closes.
class Saturating {
 public:
  Saturating(Node& node, pid_t pid, const std::string& id, Time now) : worker_(node, pid, id, now) {
    worker_.waits(node, now);
  }

  void step(Node& node, Time now) {
    worker_.mailbox().wants = worker_.has(Grant::closed) ? 1 : 0;
    if (!worker_.has(Grant::closed)) {
      worker_.mailbox().idleSince = 0;
      drainedAt_ = kNever;
    } else if (drainedAt_ == kNever) {
      drainedAt_ = now + 300 * kMicrosecond;
      worker_.say(node, now);
    } else if (now >= drainedAt_) {
      worker_.hasDrained(node, now);
    }
  }

 private:
  const Worker worker_;
  Time drainedAt_ = 0;
};

/// Percent of two seconds that each tenant was charged.
std::vector<double> sharesOf(const std::vector<int>& weights, Policy policy) {
  constexpr Time kLength = 2 * kSecond;
  Node node({});
  Time now = kSecond;
  const auto nameOf = [](std::size_t i) { return "tenant-" + std::to_string(i); };
  std::vector<std::unique_ptr<Saturating>> tenants;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    node.put(nameOf(i), {.weight = weights[i], .policy = policy, .gpus = {"GPU-0"}}, now);
    tenants.push_back(
        std::make_unique<Saturating>(node, static_cast<pid_t>(i + 1), nameOf(i), now));
  }
  for (const Time end = now + kLength; now < end; now += 50 * kMicrosecond) {
    node.update(now);
    for (const auto& tenant : tenants) tenant->step(node, now);
  }
  const std::map<std::string, TimeUse> figures = node.figures(now);
  std::vector<double> shares;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const TimeUse& use = figures.at(nameOf(i));
    shares.push_back(100.0 * static_cast<double>(use.granted + use.overrun) /
                     static_cast<double>(kLength));
  }
  return shares;
}

TEST_CASE("tenants that always have work get their shares") {
  for (const Policy policy : {Policy::burst, Policy::fixed}) {
    for (const std::vector<int>& weights : {std::vector{50, 50}, {25, 75}, {10, 20, 70}}) {
      const std::vector<double> shares = sharesOf(weights, policy);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        CAPTURE((policy == Policy::fixed ? "fixed" : "burst"));
        CHECK(shares[i] >= weights[i] - 2);
        CHECK(shares[i] <= weights[i] + 2);
      }
    }
  }
}

}  // namespace
