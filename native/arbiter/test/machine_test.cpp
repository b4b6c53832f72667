// The policy on a modelled machine: what was measured, what the policy has to reach, and tenants
// that want more than their share.
#include "native/arbiter/test/machine.h"

#include <doctest/doctest.h>

#include "native/arbiter/test/simulation.h"

namespace arbiter::test {
namespace {

Machine decoders(std::size_t count, const Timing& timing = {}, Time work = Player{}.work) {
  Player player;
  player.work = work;
  player.weight = 100 / static_cast<int>(count);
  return Machine(std::vector<Player>(count, player), timing);
}

Timing withoutPauses(Time window) {
  Timing timing;
  timing.window = window;
  timing.shortestPausing = kNever / 4;
  return timing;
}

/// A pause ends a window whether work runs or not.
Timing atAnyPause() {
  Timing timing;
  timing.shortestPausing = 1'375 * kMicrosecond;
  timing.runningPause = 0;
  return timing;
}

Time us(Time microseconds) { return microseconds * kMicrosecond; }

// Two H100, 2026-11-24. Runs of one row differ by up to 0.04 from host to host.
TEST_CASE("the modelled machine does what was measured") {
  const struct {
    Timing timing;
    std::size_t decoders;
    double total, p99;
  } measured[] = {
      {withoutPauses(us(5'000)), 2, 0.978, 5.4},
      {withoutPauses(us(5'000)), 4, 0.944, 15.5},
      {withoutPauses(us(2'000)), 2, 0.957, 2.4},
      {withoutPauses(us(2'000)), 4, 0.939, 6.5},
      {withoutPauses(us(1'925)), 2, 0.91, 2.5},
      {withoutPauses(us(1'375)), 4, 0.86, 5.0},
      {atAnyPause(), 2, 0.950, 2.41},
      {atAnyPause(), 4, 0.902, 4.75},
  };
  for (const auto& row : measured) {
    const Machine machine = decoders(row.decoders, row.timing);
    CAPTURE(row.decoders);
    CAPTURE(row.p99);
    CHECK(machine.total() == near(row.total, 0.04));
    CHECK(machine.p99() == near(row.p99, row.p99 / 20));
  }
}

// Whatever part of a round is under way when a window may end.
TEST_CASE("decoders keep the GPU and wait little") {
  for (const Time work : {us(150), us(175), us(185), us(195), us(250)}) {
    CAPTURE(work);
    const Machine two = decoders(2, {}, work), four = decoders(4, {}, work);
    CHECK(two.total() >= 0.955);
    CHECK(two.p99() <= 2.5);
    CHECK(four.total() >= 0.935);
    CHECK(four.p99() <= 4.6);
  }
}

TEST_CASE("windows are shorter if all want a low latency") {
  std::vector<Player> low(4, Player{.weight = 25, .lowLatency = true});
  const Machine two({{.lowLatency = true}, {.lowLatency = true}}), four(low);
  CHECK(two.total() >= 0.89);
  CHECK(two.p99() <= 1.2);
  CHECK(four.total() >= 0.89);
  CHECK(four.p99() <= 3);
  // One that does not want it loses nothing, and decides for all.
  low[3].lowLatency = false;
  CHECK(Machine(low).total() == decoders(4).total());
  CHECK(Machine(low).p99() == decoders(4).p99());
  const Player batch{.work = us(600), .pause = 0, .issue = us(5), .lowLatency = true};
  CHECK(Machine({{.lowLatency = true}, batch}).p99() <= 4);  // 6.4 else
  CHECK(Machine({batch, batch}).total() >= 0.93);
}

// The arbiter sleeps when their pauses come.
TEST_CASE("tenants that submit for longer lose nothing") {
  for (const Time pause : {us(60), us(200), us(400)}) {
    CAPTURE(pause);
    const std::vector<Player> bound(2, {.work = us(2'000), .pause = pause, .issue = us(2'000)});
    CHECK(Machine(bound).total() >= Machine(bound, withoutPauses(us(5'000))).total());
  }
}

TEST_CASE("no kind of work takes more than its share from a decoder") {
  const Player cheats[] = {
      {.work = us(15), .pause = us(25), .issue = us(5)},       // tiny rounds
      {.work = us(3'900), .pause = us(25), .issue = us(20)},   // as long as a drain may take
      {.work = us(1'000), .pause = us(280), .issue = us(20)},  // rests just short of a gap
      {.work = us(600), .pause = 0, .issue = us(5)},           // never pauses
      {.work = us(600), .pause = 0, .issue = us(5), .claims = Pace::pausing},
      {.work = us(600), .pause = 0, .issue = us(5), .claims = Pace::pausing, .fidgets = true},
      {.claims = Pace::steady},
      {.fidgets = true},
  };
  for (const Player& cheat : cheats) {
    CAPTURE(&cheat - cheats);
    const Machine two({{}, cheat});
    CHECK(two.share(0) == near(50, 0.5));
    CHECK(two.part(two.players[0]) >= 0.47);
    std::vector<Player> players{{}, {}, {}, cheat};
    for (Player& p : players) p.weight = 25;
    const Machine four(players);
    for (std::size_t i = 0; i < 4; ++i) CHECK(four.share(i) == near(25, 0.5));
    CHECK(four.part(four.players[0]) >= 0.23);
  }
}

}  // namespace
}  // namespace arbiter::test
