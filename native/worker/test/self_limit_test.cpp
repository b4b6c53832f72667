// A session that limits itself to its share, in virtual time.
#include "native/worker/gate/self_limit.h"

#include <doctest/doctest.h>

#include <initializer_list>

namespace {

using arbiter::Grant;
using worker::SelfLimit;

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond, kStep = 10'000;

/// A session that always has work, of which `drain` is left at the end of its window.
struct Played {
  std::uint32_t share;
  std::uint64_t drain;
  SelfLimit limit;
  Grant grant = Grant::closed;
  std::uint64_t now = 7 * kSecond, endsAt = 0, used = 0, longest = 0;

  void run(std::uint64_t length) {
    for (const std::uint64_t end = now + length; now < end; now += kStep) {
      const bool running = grant == Grant::window || now < endsAt;
      if (running) used += kStep;
      const Grant next =
          limit.decide({.share = share, .grant = grant, .waiting = true, .running = running}, now);
      if (grant == Grant::window && next == Grant::closed) endsAt = now + drain;
      grant = next;
    }
  }
};

TEST_CASE("a session keeps to its share") {
  for (const std::uint32_t share : {10'000u, 50'000u, 500'000u}) {
    for (const std::uint64_t drain : {std::uint64_t{0}, kMillisecond, 200 * kMillisecond}) {
      Played played{.share = share, .drain = drain};
      played.run(20 * kSecond);
      const std::uint64_t part = 20 * kSecond / 1'000'000 * share;
      const std::uint64_t window = 100 * kMillisecond / 1'000'000 * share;
      CHECK(played.used <= part + 2 * window + drain);
      CHECK(played.used + drain >= part * 9 / 10);
    }
  }
}

// And it has nothing at first.
TEST_CASE("an idle session saves little up") {
  SelfLimit limit;
  const SelfLimit::State waits{
      .share = 50'000, .grant = Grant::closed, .waiting = true, .running = false};
  CHECK(limit.decide(waits, kSecond) == Grant::closed);
  CHECK(limit.rest() <= 50 * kMillisecond + 1);
  CHECK(limit.decide(waits, kSecond + limit.rest()) == Grant::window);
  SelfLimit::State idle = waits;
  idle.waiting = false;
  CHECK(limit.decide(idle, 2 * kSecond) == Grant::closed);
  CHECK(limit.rest() == ~std::uint64_t{0});
  CHECK(limit.decide(waits, 3600 * kSecond) == Grant::window);
  SelfLimit::State uses = waits;
  uses.grant = Grant::window;
  uses.running = true;
  CHECK(limit.rest() <= 5 * kMillisecond);
  CHECK(limit.decide(uses, 3600 * kSecond + 6 * kMillisecond) == Grant::closed);
}

TEST_CASE("a window ends with its work") {
  SelfLimit limit;
  limit.decide({.share = 500'000, .grant = Grant::closed, .waiting = true, .running = false},
               kSecond);
  CHECK(limit.decide({.share = 500'000, .grant = Grant::closed, .waiting = true, .running = false},
                     2 * kSecond) == Grant::window);
  CHECK(limit.decide({.share = 500'000, .grant = Grant::window, .waiting = false, .running = false},
                     2 * kSecond + 1) == Grant::closed);
  // The next window waits for running work.
  CHECK(limit.decide({.share = 500'000, .grant = Grant::closed, .waiting = true, .running = true},
                     2 * kSecond + 2) == Grant::closed);
}

}  // namespace
