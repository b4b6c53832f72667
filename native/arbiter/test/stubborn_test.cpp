// The effect of a tenant whose work does not end, or that does not answer, on the others, in
// virtual time.
#include <doctest/doctest.h>

#include <utility>

#include "native/arbiter/test/simulation.h"

namespace arbiter::test {
namespace {

// From then on the other tenant has half of the GPU, and later its share.
TEST_CASE("a kernel of seconds delays the next tenant by the drain limit") {
  Simulation simulation({batch("stubborn", terms(50), 3 * kSecond), batch("other", terms(50))});
  simulation["other"].from = kMillisecond;
  simulation.run(10 * kMillisecond);
  CHECK(simulation["other"].done > 0);
  CHECK(simulation["other"].longestWait <= 4 * kMillisecond + kStep);
  simulation.run(12 * kSecond);
  CHECK(simulation.share("stubborn") == near(50, 8));
  CHECK(simulation.share("other") == near(50, 8));
}

/// What a busy tenant and one that pauses have of a second beside a third one with kernels of
/// `length`. The time is long enough for overruns to be paid back.
std::pair<Time, Time> besideKernelsOf(Time length, int weight) {
  Tenant thinker = batch("thinker", terms(25), 180 * kMicrosecond);
  thinker.think = 2 * kMillisecond;
  Simulation simulation({batch("other", terms(weight), length), batch("busy", terms(25)), thinker});
  const Time seconds = 5 + 20 * length / kSecond;
  simulation.run(seconds * kSecond);
  return {simulation["busy"].done / seconds, simulation["thinker"].done / seconds};
}

TEST_CASE("kernels that outlast their windows leave the others no less than short ones") {
  for (const int weight : {50, 10}) {
    const auto [busy, thinker] = besideKernelsOf(200 * kMicrosecond, weight);
    for (const Time length : {5 * kMillisecond, 20 * kMillisecond, 50 * kMillisecond,
                              300 * kMillisecond, 3 * kSecond}) {
      const auto [busyKept, thinkerKept] = besideKernelsOf(length, weight);
      CHECK(busyKept >= busy * 95 / 100);
      CHECK(thinkerKept >= thinker * 95 / 100);
    }
  }
}

/// How long the next tenant waits for each of the drains.
std::vector<Time> waitsAfterDrainsOf(const std::vector<Time>& lengths) {
  Schedule schedule;
  schedule.put("a", terms(50), 0);
  schedule.put("b", terms(50), 0);
  std::vector<Time> waits;
  Time now = 0;
  for (const Time length : lengths) {
    schedule.setDemand("a", Demand::waiting, now);
    schedule.advance(now);
    schedule.setDemand("b", Demand::waiting, now);
    schedule.advance(now);
    while (schedule.order("a").grant != Grant::closed)
      schedule.advance(now = std::max(now, schedule.deadline()));
    const Time closed = now;
    while (schedule.order("b").grant != Grant::window) schedule.advance(now = schedule.deadline());
    waits.push_back(now - closed);
    schedule.drained("a", Pace::steady, now = std::max(now, closed + length));
    schedule.setDemand("b", Demand::none, now);
    schedule.advance(now);
    schedule.setDemand("a", Demand::waiting, now);
    schedule.advance(now);
    schedule.drained("b", Pace::steady, now);
  }
  return waits;
}

// Drains that end in time restore the limit.
TEST_CASE("drains that time out are waited for less and less") {
  const Time longer = 20 * kMillisecond, shorter = kMillisecond, most = 4 * kMillisecond;
  CHECK(waitsAfterDrainsOf({longer, longer, longer, longer, longer, shorter, shorter, shorter,
                            shorter, shorter}) ==
        std::vector<Time>(
            {most, most / 2, most / 4, most / 8, 0, 0, most / 8, most / 4, most / 2, most}));
}

TEST_CASE("a tenant that no longer answers is charged while the others go on") {
  Schedule schedule;
  schedule.put("silent", terms(50), 0);
  schedule.put("other", terms(50), 0);
  schedule.setDemand("silent", Demand::waiting, 0);
  schedule.advance(0);
  Time now = kMillisecond;
  schedule.setDemand("other", Demand::waiting, now);
  CHECK(schedule.advance(now) == std::vector<Order>({{"silent", Grant::closed, 2 * kMillisecond}}));
  CHECK(schedule.deadline() == now + 4 * kMillisecond);
  now = schedule.deadline();
  CHECK(schedule.advance(now) == std::vector<Order>({{"other", Grant::window, 2 * kMillisecond}}));
  schedule.setDemand("other", Demand::busy, now);
  while (schedule.deadline() != kNever) schedule.advance(now = schedule.deadline());
  CHECK(schedule.order("other").grant == Grant::window);
  const Time before = schedule.use("silent").overrun;
  schedule.advance(now += kSecond * 3600);
  CHECK(schedule.use("silent").overrun - before == kSecond * 1800);
  schedule.drained("silent", Pace::unknown, now);
  schedule.advance(now + kSecond);
  CHECK(schedule.use("silent").overrun - before == kSecond * 1800);
}

// The hardware gives each context a turn.
TEST_CASE("work in several contexts is charged for each of them") {
  for (const int contexts : {1, 3}) {
    Schedule schedule;
    schedule.put("many", terms(50), 0);
    schedule.put("other", terms(50), 0);
    schedule.setDemand("many", Demand::waiting, 0);
    schedule.advance(0);
    schedule.setDemand("other", Demand::waiting, kMillisecond);
    schedule.advance(kMillisecond);
    schedule.setContexts("many", contexts, kMillisecond);
    const Time begin = schedule.deadline();
    schedule.advance(begin);
    CHECK(schedule.order("other").grant == Grant::window);
    const TimeUse many = schedule.use("many"), other = schedule.use("other");
    schedule.advance(begin + kSecond);
    CHECK(schedule.use("many").overrun - many.overrun == kSecond * contexts / (contexts + 1));
    CHECK(schedule.use("other").granted - other.granted == kSecond / (contexts + 1));
  }
}

// However far its account is ahead.
TEST_CASE("a kernel that waits for its own program has a turn after ten seconds") {
  Schedule schedule;
  schedule.put("waits", terms(50), 0);
  schedule.put("other", terms(50), 0);
  schedule.setDemand("waits", Demand::waiting, 0);
  schedule.advance(0);
  schedule.setDemand("other", Demand::waiting, kMillisecond);
  schedule.advance(kMillisecond);
  schedule.setDemand("waits", Demand::waiting, kMillisecond);
  Time now = kMillisecond;
  while (schedule.order("waits").grant == Grant::closed && now < kSecond * 60) {
    now = schedule.deadline() == kNever ? now + kMillisecond : schedule.deadline();
    schedule.setDemand(
        "other", schedule.order("other").grant == Grant::closed ? Demand::waiting : Demand::busy,
        now);
    schedule.advance(now);
  }
  CHECK(now >= kSecond * 10);
  CHECK(now < kSecond * 11);
}

TEST_CASE("an overrun beside other tenants is overdue after the limit") {
  Schedule schedule;
  schedule.setOverrunLimit(5 * kSecond);
  schedule.put("stubborn", terms(50), 0);
  schedule.put("other", terms(50), 0);
  schedule.setDemand("stubborn", Demand::waiting, 0);
  schedule.advance(0);
  schedule.setDemand("other", Demand::waiting, kMillisecond);
  schedule.advance(kMillisecond);
  const Time overruns = schedule.deadline();
  schedule.advance(overruns);
  schedule.advance(overruns + 2 * kSecond);
  CHECK(schedule.overdue("stubborn") == 0);
  // An overrun without another tenant has no limit.
  schedule.setDemand("other", Demand::none, overruns + 2 * kSecond);
  schedule.advance(overruns + 2 * kSecond);
  schedule.advance(overruns + 60 * kSecond);
  CHECK(schedule.overdue("stubborn") == 0);
  schedule.setDemand("other", Demand::busy, overruns + 60 * kSecond);
  schedule.advance(overruns + 60 * kSecond);
  CHECK(schedule.deadline() == overruns + 63 * kSecond);
  schedule.advance(overruns + 63 * kSecond);
  CHECK(schedule.overdue("stubborn") == 5 * kSecond);
  CHECK(schedule.overdue("other") == 0);
  schedule.setOverrunLimit(0);
  CHECK(schedule.overdue("stubborn") == 0);
}

// Nor does it get around the limit with work that it adds in its turns.
TEST_CASE("a kernel that never ends is overdue after the limit, whatever waits behind it") {
  Simulation simulation({batch("stubborn", terms(75), 3600 * kSecond), batch("other", terms(25))});
  simulation.schedule.setOverrunLimit(5 * kSecond);
  simulation["other"].from = kMillisecond;
  simulation.run(5 * kSecond);
  CHECK(simulation.schedule.use("stubborn").windows > 1);
  CHECK(simulation.schedule.overdue("stubborn") == 0);
  simulation.run(100 * kMillisecond);
  CHECK(simulation.schedule.overdue("stubborn") >= 5 * kSecond);
  CHECK(simulation.schedule.overdue("other") == 0);
}

TEST_CASE("kernels that end before the limit are never overdue, however many follow") {
  for (const Time kernel : {20 * kMillisecond, kSecond}) {
    // A neighbour that always has work, one that pauses, and one that pauses and goes first.
    for (const auto& [think, priority] :
         {std::pair<Time, int>{0, 0}, {3 * kMillisecond, 0}, {3 * kMillisecond, 10}}) {
      Tenant other = batch("other", terms(50, Policy::burst, priority), kMillisecond);
      other.think = think;
      Simulation simulation({batch("long", terms(50), kernel), other});
      simulation.schedule.setOverrunLimit(5 * kSecond);
      for (Time at = 0; at < 60 * kSecond; at += 100 * kMillisecond) {
        simulation.run(100 * kMillisecond);
        CHECK(simulation.schedule.overdue("long") == 0);
      }
      CHECK(simulation.share("long") > 42);
    }
  }
}

TEST_CASE("a kernel that fed itself while alone goes on when the others have left") {
  Schedule schedule;
  schedule.setOverrunLimit(10 * kSecond);
  schedule.put("persistent", terms(50), 0);
  schedule.put("other", terms(50), 0);
  schedule.setDemand("persistent", Demand::waiting, 0);
  schedule.advance(0);
  schedule.setDemand("other", Demand::waiting, kMillisecond);
  Time now = kMillisecond;
  while (schedule.order("other").grant != Grant::window) {
    schedule.advance(now);
    now = std::max(now, schedule.deadline());
  }
  schedule.advance(now += 7 * kSecond);
  schedule.setDemand("persistent", Demand::waiting, now);
  schedule.setDemand("other", Demand::none, now);
  schedule.advance(now);
  CHECK(schedule.order("persistent").grant == Grant::closed);
  CHECK(schedule.deadline() == now + Timing{}.contention);
  schedule.advance(now += Timing{}.contention);
  schedule.drained("other", Pace::unknown, now);
  schedule.advance(now);
  while (schedule.order("persistent").grant != Grant::open && schedule.deadline() != kNever)
    schedule.advance(now = schedule.deadline());
  CHECK(schedule.order("persistent").grant == Grant::open);
}

TEST_CASE("a time alone on the GPU leaves later work half of the limit") {
  Schedule schedule;
  schedule.setOverrunLimit(10 * kSecond);
  schedule.put("stubborn", terms(50), 0);
  schedule.put("other", terms(50), 0);
  Time now = 0;
  const auto both = [&](Demand demand) {
    schedule.setDemand("other", Demand::waiting, now);
    schedule.advance(now);
    while (schedule.order("stubborn").grant != Grant::closed)
      schedule.advance(now = schedule.deadline());
    schedule.setDemand("stubborn", demand, now);
    while (schedule.order("other").grant != Grant::window)
      schedule.advance(now = schedule.deadline());
  };
  schedule.setDemand("stubborn", Demand::waiting, now);
  schedule.advance(now);
  both(Demand::none);
  schedule.advance(now += 9 * kSecond);
  schedule.setDemand("other", Demand::none, now);
  schedule.setDemand("stubborn", Demand::waiting, now);
  schedule.advance(now);
  schedule.advance(now = schedule.deadline());
  schedule.drained("other", Pace::unknown, now);
  schedule.advance(now);
  while (schedule.order("stubborn").grant != Grant::open && schedule.deadline() != kNever)
    schedule.advance(now = schedule.deadline());
  CHECK(schedule.order("stubborn").grant == Grant::open);
  both(Demand::waiting);
  schedule.advance(now += 4 * kSecond);
  CHECK(schedule.overdue("stubborn") == 0);
  CHECK(schedule.order("stubborn").grant == Grant::closed);
  schedule.advance(now += 2 * kSecond);
  CHECK(schedule.overdue("stubborn") >= 10 * kSecond);
}

// It is charged its share and one window at most, whatever the length of its kernels, if its work
// ends in time.
TEST_CASE("a fixed share holds over any half second") {
  constexpr Time kSpan = 500 * kMillisecond, kEvery = kMillisecond;
  for (const Time kernel : {20 * kMicrosecond, 200 * kMicrosecond, 2 * kMillisecond}) {
    for (const bool beside : {false, true}) {
      std::vector<Tenant> tenants{batch("fixed", terms(5, Policy::fixed), kernel)};
      if (beside) tenants.push_back(batch("burst", terms(95)));
      Simulation simulation(tenants);
      std::vector<Time> charged;
      for (Time at = 0; at < 5 * kSecond; at += kEvery) {
        charged.push_back(simulation.charged("fixed"));
        simulation.run(kEvery);
      }
      for (std::size_t i = 0; i + kSpan / kEvery < charged.size(); ++i)
        CHECK(charged[i + kSpan / kEvery] - charged[i] <=
              kSpan * 5 / 100 + 5 * kMillisecond + kernel);
    }
  }
}

}  // namespace
}  // namespace arbiter::test
