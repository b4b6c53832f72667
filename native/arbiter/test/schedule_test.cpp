// The scheduling policy in virtual time: shares, turns, priorities, gangs.
#include "native/arbiter/schedule.h"

#include <doctest/doctest.h>

#include <array>

#include "native/arbiter/test/simulation.h"

namespace arbiter::test {
namespace {

constexpr Time kPlayed = 2 * kSecond;

/// 180 us of work, then a pause of 60 us.
Tenant decoder(const std::string& id, Terms t) {
  Tenant tenant = batch(id, std::move(t), 180 * kMicrosecond);
  tenant.think = 60 * kMicrosecond;
  return tenant;
}

Time worked(const Simulation& simulation) {
  Time sum = 0;
  for (const Tenant& t : simulation.tenants) sum += t.done;
  return sum;
}

TEST_CASE("tenants that always have work get their shares") {
  for (const Policy policy : {Policy::burst, Policy::fixed}) {
    for (const Time kernel : {50 * kMicrosecond, 200 * kMicrosecond, 2 * kMillisecond}) {
      Simulation even(
          {batch("a", terms(50, policy), kernel), batch("b", terms(50, policy), kernel)});
      even.run(kPlayed);
      CHECK(even.share("a") == near(50));
      CHECK(even.share("b") == near(50));
      Simulation quarter({batch("a", terms(25, policy), kernel),
                          batch("b", terms(75, policy), 200 * kMicrosecond)});
      quarter.run(kPlayed);
      CHECK(quarter.share("a") == near(25));
      CHECK(quarter.share("b") == near(75));
      Simulation three({batch("a", terms(10, policy), kernel),
                        batch("b", terms(20, policy), kernel),
                        batch("c", terms(70, policy), kernel)});
      three.run(kPlayed);
      CHECK(three.share("a") == near(10));
      CHECK(three.share("b") == near(20));
      CHECK(three.share("c") == near(70));
      // Fixed shares that sum up to all of a GPU leave it idle for a part of the time.
      CHECK(worked(three) > kPlayed * 94 / 100);
    }
  }
}

TEST_CASE("a fixed share is never exceeded") {
  Simulation alone({batch("a", terms(30, Policy::fixed))});
  Time before = 0;
  for (int period = 0; period < 20; ++period) {
    alone.run(100 * kMillisecond);
    CHECK(static_cast<double>(alone.charged("a") - before) / kMillisecond == near(30, 8));
    before = alone.charged("a");
  }
  CHECK(alone.share("a") == near(30, 1));

  // Beside a burst tenant, the fixed tenant has its share and the other the rest.
  Simulation beside({batch("fixed", terms(25, Policy::fixed)), batch("burst", terms(10))});
  beside.run(kPlayed);
  CHECK(beside.share("fixed") == near(25));
  CHECK(beside.share("burst") == near(75));

  Simulation whole({batch("a", terms(100, Policy::fixed))});
  whole.run(kPlayed);
  // A share of 100 % is no limit.
  CHECK(whole.grant("a") == Grant::open);
  CHECK(whole["a"].done >= kPlayed - kStep);
  Simulation least({batch("a", terms(1, Policy::fixed), 50 * kMicrosecond)});
  least.run(10 * kSecond);
  CHECK(least.share("a") == near(1, 0.3));
}

TEST_CASE("idle time goes to the tenant that wants it") {
  Simulation simulation({batch("a", terms(10)), batch("b", terms(90))});
  simulation["b"].until = kSecond;
  simulation.run(kPlayed);
  CHECK(static_cast<double>(simulation["a"].done) / kSecond == near(1.1, 0.05));
  CHECK(simulation.grant("a") == Grant::open);  // b left half a second ago
}

TEST_CASE("an idle tenant saves nothing up") {
  Simulation simulation(
      {batch("early", terms(50)), batch("late", terms(50)), batch("other", terms(50))});
  simulation["late"].from = kSecond;
  simulation.run(kPlayed);
  CHECK(100.0 * static_cast<double>(simulation["late"].done) / kSecond == near(33.3, 3));
}

TEST_CASE("a lone tenant is never closed") {
  Simulation simulation({batch("a", terms(10)), batch("silent", terms(90))});
  simulation["silent"].from = kNever;
  simulation.run(kPlayed);
  CHECK(simulation.orders == 1);
  CHECK(simulation.grant("a") == Grant::open);
  CHECK(simulation.schedule.deadline() == kNever);  // the arbiter sleeps
  const TimeUse idle = simulation.schedule.use("a");
  simulation.schedule.used("a", 0, simulation.now);
  CHECK(simulation.schedule.use("a").granted == idle.granted);
  simulation.run(kSecond);
  simulation.schedule.used("a", kSecond / 4, simulation.now);
  CHECK(simulation.schedule.use("a").granted == idle.granted + kSecond / 4);
  // Several processes may have used the same time; time from long ago is not counted.
  const Time before = simulation.schedule.use("a").granted;
  simulation.schedule.used("a", 4 * kSecond, simulation.now + kSecond);
  const Time counted = simulation.schedule.use("a").granted - before;
  CHECK(counted >= kSecond);
  CHECK(counted <= kSecond + 100 * kMillisecond);
  simulation.schedule.used("a", kSecond / 2, simulation.now + kSecond + kSecond / 2);
  CHECK(simulation.schedule.use("a").granted == before + counted + kSecond / 2);
}

TEST_CASE("a launch-bound tenant and a batch job each get half of what they do alone") {
  Simulation simulation(
      {decoder("decoder", terms(50)), batch("batch", terms(50), 600 * kMicrosecond)});
  simulation.run(kPlayed);
  const double half = 0.75 * static_cast<double>(kPlayed) / 2;  // of its work alone
  CHECK(100 * static_cast<double>(simulation["decoder"].done) / half == near(100, 10));
  CHECK(100.0 * static_cast<double>(simulation["batch"].done) / (kPlayed / 2.0) == near(100, 10));
}

TEST_CASE("a tenant that pauses gives its window up") {
  Simulation simulation({decoder("a", terms(50)), batch("b", terms(50))});
  simulation["a"].think = 3 * kMillisecond;
  simulation.run(kPlayed);
  CHECK(worked(simulation) > kPlayed * 90 / 100);
  CHECK(simulation["a"].longestWait <=
        8 * kMillisecond);  // a window of the other tenant, and its drain
}

TEST_CASE("work of higher priority does not wait") {
  Simulation simulation({decoder("high", terms(50, Policy::burst, 10)), batch("low", terms(50))});
  simulation["high"].kernel = kMillisecond;
  simulation["high"].think = 5 * kMillisecond;
  simulation["high"].from = 100 * kMillisecond;
  simulation.run(200 * kMillisecond);
  CHECK(simulation.schedule.order("low").queue == 150 * kMicrosecond);
  simulation["high"].longestWait = 0;  // its first work finds a neighbour without a limit
  simulation.run(kPlayed);
  CHECK(simulation["high"].longestWait == 0);  // its window stood open
  CHECK(100.0 * static_cast<double>(simulation["high"].done) / static_cast<double>(kPlayed) ==
        near(16, 2));
  CHECK(worked(simulation) > kPlayed * 90 / 100);

  Simulation bounded({batch("high", terms(30, Policy::fixed, 1)), batch("low", terms(70))});
  bounded.run(kPlayed);
  CHECK(bounded.share("high") == near(30));
  CHECK(bounded.share("low") == near(70));
}

/// Percent of the time of each tenant, where the first outranks the others and never pauses.
std::vector<double> besideGreedy(const std::vector<int>& weights, int guarantee,
                                 Time kernel = 200 * kMicrosecond) {
  std::vector<Tenant> tenants;
  for (const int weight : weights) {
    const int priority = tenants.empty() ? 10 : 0;
    tenants.push_back(
        batch(std::to_string(tenants.size()), terms(weight, Policy::burst, priority)));
    if (priority == 0) tenants.back().kernel = kernel;
  }
  Simulation simulation(std::move(tenants), {.guarantee = guarantee});
  simulation.run(10 * kSecond);
  std::vector<double> shares;
  for (const Tenant& t : simulation.tenants) shares.push_back(simulation.share(t.id));
  return shares;
}

TEST_CASE("a higher priority that never pauses leaves lower ones half of their shares") {
  CHECK(besideGreedy({30, 70}, 50)[0] == near(65));
  CHECK(besideGreedy({30, 70}, 50)[1] == near(35));
  CHECK(besideGreedy({90, 10}, 50)[1] == near(5, 1));
  CHECK(besideGreedy({99, 1}, 50)[1] == near(0.5, 0.3));
  const std::vector<double> three = besideGreedy({20, 20, 60}, 50);
  CHECK(three[1] == near(10));
  CHECK(three[2] == near(30));
  // Where the shares exceed the GPU, each is a part of their sum.
  CHECK(besideGreedy({100, 100, 100}, 50)[1] == near(16.7));
  // Longer kernels get no more. A kernel beside another tenant's counts by half.
  for (const Time kernel : {2 * kMillisecond, 20 * kMillisecond, 300 * kMillisecond})
    CHECK(besideGreedy({90, 10}, 50, kernel)[1] == near(5, 1.5));
}

TEST_CASE("the guaranteed part of lower shares is a setting") {
  CHECK(besideGreedy({30, 70}, 0)[1] < 2);
  CHECK(besideGreedy({30, 70}, 20)[1] == near(14));
  CHECK(besideGreedy({30, 70}, 100)[1] == near(70, 4));
}

TEST_CASE("a guarantee holds between three priorities") {
  Simulation simulation({batch("high", terms(20, Policy::burst, 20)),
                         batch("middle", terms(40, Policy::burst, 10)), batch("low", terms(40))});
  simulation.run(10 * kSecond);
  CHECK(simulation.share("high") == near(60));
  CHECK(simulation.share("middle") == near(20));
  CHECK(simulation.share("low") == near(20));
}

// In a burst of the higher one, the lower one waits for its guarantee and what it had beyond that.
TEST_CASE("time that a higher priority leaves counts toward the guarantee") {
  for (const int weight : {50, 90}) {
    Simulation simulation(
        {decoder("high", terms(100 - weight, Policy::burst, 10)), batch("low", terms(weight))});
    simulation["high"].kernel = 5 * kMillisecond;
    simulation["high"].think = 10 * kMillisecond;
    simulation.run(kSecond);
    simulation["high"].longestWait = simulation["high"].longestRound = 0;
    simulation.run(kPlayed);
    CHECK(simulation["high"].longestWait == 0);
    CHECK(simulation["high"].longestRound <= 6 * kMillisecond);
  }
}

TEST_CASE("a guaranteed window delays a higher priority by its length at most") {
  for (const int priority : {0, -100}) {
    Simulation simulation({batch("high", terms(50, Policy::burst, 10)),
                           batch("low", terms(50, Policy::burst, priority), 50 * kMicrosecond)});
    simulation.run(100 * kMillisecond);
    simulation["high"].longestWait = 0;  // its first work finds a neighbour without a limit
    simulation.run(kPlayed);
    CHECK(simulation.share("low") == near(25));
    const Time own = Timing{}.queue + simulation["high"].kernel;  // its own drain
    CHECK(simulation["high"].longestWait <= own + Timing{}.window + kStep);
  }
}

// Its first work would run into the window.
TEST_CASE("no tenant stands by during a guaranteed window") {
  Schedule schedule;
  schedule.put("high", terms(50, Policy::burst, 10), 0);
  schedule.put("low", terms(50), 0);
  Time now = 0;
  schedule.setDemand("high", Demand::waiting, now);
  schedule.advance(now);
  schedule.setDemand("low", Demand::waiting, now);
  while (schedule.order("low").grant == Grant::closed && now < kSecond) {
    schedule.advance(now = std::min(now + kMillisecond, schedule.deadline()));
  }
  CHECK(schedule.order("high").grant == Grant::closed);
  schedule.drained("high", Pace::unknown, now);
  schedule.advance(now);
  CHECK(!schedule.order("high").standby);
  const Time end = now + Timing{}.window;
  CHECK(schedule.deadline() == end);
  schedule.setDemand("high", Demand::waiting, now);
  CHECK(schedule.advance(now).empty());
  schedule.setDemand("high", Demand::none, now);
  schedule.advance(end);
  CHECK(schedule.order("low").grant == Grant::window);
  CHECK(schedule.order("high").standby);
}

TEST_CASE("an idle tenant of higher priority stands by") {
  Simulation simulation({decoder("high", terms(40, Policy::burst, 10)),
                         decoder("peer", terms(30, Policy::burst, 10)), batch("low", terms(30))});
  simulation["high"].from = 100 * kMillisecond;
  simulation["peer"].from = 200 * kMillisecond;
  simulation.run(kMillisecond);
  CHECK(simulation.schedule.order("high").standby);
  CHECK(simulation.schedule.order("peer").standby);
  CHECK(simulation.grant("low") != Grant::closed);
  CHECK(simulation.schedule.outranks("high"));
  CHECK(!simulation.schedule.outranks("low"));
  CHECK(!simulation.schedule.isHandingOver(simulation.now));
  simulation.run(99 * kMillisecond);
  CHECK(simulation.schedule.use("high").granted == 0);
  CHECK(simulation.schedule.use("high").overrun == 0);

  // The first tenant that begins has the GPU at once; its peer waits for its turn.
  simulation.run(kStep);
  CHECK(simulation.schedule.order("high") ==
        (Order{"high", Grant::window, simulation.schedule.order("high").queue}));
  CHECK(simulation.grant("low") == Grant::closed);
  CHECK(simulation.grant("peer") == Grant::closed);
  simulation.run(kPlayed);
  CHECK(simulation.share("high") / simulation.share("peer") == near(1, 0.4));

  // If two begin at the same moment, one has the GPU, and what the other has begun is charged.
  Simulation both({decoder("high", terms(40, Policy::burst, 10)),
                   decoder("peer", terms(30, Policy::burst, 10)), batch("low", terms(30))});
  both["high"].from = both["peer"].from = 100 * kMillisecond;
  both.run(100 * kMillisecond + 3 * kStep);
  CHECK((both.grant("high") == Grant::window) != (both.grant("peer") == Grant::window));
  both.run(kPlayed);
  CHECK(both.share("high") / both.share("peer") == near(1, 0.4));

  // A tenant without priority over the tenant that has the GPU does not stand by.
  Simulation equals({decoder("idle", terms(50)), batch("busy", terms(50))});
  equals["idle"].from = kSecond;
  equals.run(100 * kMillisecond);
  CHECK(equals.grant("idle") == Grant::closed);
}

/// Rounds of 1 ms, each 4 ms after the end of the last.
Tenant requests(const std::string& id, Time from = 0, Policy policy = Policy::burst) {
  Tenant tenant = batch(id, terms(50, policy, 10), kMillisecond);
  tenant.think = 4 * kMillisecond;
  tenant.from = from;
  return tenant;
}

/// The longest round of requests, once they are known, beside a batch job.
Time longestRequestBeside(Time kernel, Time& workOfTheOther) {
  Simulation simulation({requests("requests"), batch("batch", terms(50), kernel)});
  simulation.run(100 * kMillisecond);
  simulation["requests"].longestRound = simulation["requests"].longestWait = 0;
  const Time before = simulation["batch"].done;
  simulation.run(kSecond);
  workOfTheOther = simulation["batch"].done - before;
  return simulation["requests"].longestRound + simulation["requests"].longestWait;
}

// The batch job loses little by that, and work that has no better moment is not held back.
TEST_CASE("the GPU is free for requests that come regularly") {
  Time work = 0;
  CHECK(longestRequestBeside(600 * kMicrosecond, work) <= kMillisecond + 2 * kStep);
  CHECK(work > 600 * kMillisecond);
  CHECK(longestRequestBeside(3 * kMillisecond, work) > kMillisecond + kMillisecond / 2);
  CHECK(work > 600 * kMillisecond);
}

// It has room between any two requests that go first, and is not held back for a tenant that may
// not come in.
TEST_CASE("work that is held back still gets done") {
  for (const Time kernel :
       {300 * kMicrosecond, 700 * kMicrosecond, 1200 * kMicrosecond, 1800 * kMicrosecond}) {
    Simulation two(
        {requests("one"), requests("two", 2500 * kMicrosecond), batch("batch", terms(50), kernel)});
    two.run(kSecond);
    CHECK(two["batch"].done > 300 * kMillisecond);
  }
  Simulation without({requests("requests"), batch("batch", terms(50), kMillisecond)});
  without["requests"].until = 200 * kMillisecond;
  without.run(kSecond);
  CHECK(without["batch"].done > 900 * kMillisecond);

  Schedule schedule;
  schedule.put("fixed", terms(1, Policy::fixed, 10), 0);
  schedule.put("lower", terms(50), 0);
  Time now = 0;
  for (int i = 0; i < 10; ++i) {
    schedule.setDemand("lower", Demand::waiting, now += kMillisecond);
    schedule.advance(now);
    schedule.setDemand("fixed", Demand::waiting, now += kMillisecond);
    schedule.advance(now);
    schedule.drained("lower", Pace::unknown, now);
    schedule.advance(now);
    // Its tokens are spent after the first time.
    CHECK((schedule.order("fixed").grant == Grant::window) == (i == 0));
    schedule.setDemand("fixed", Demand::none, now += kMillisecond);
    schedule.advance(now);
    schedule.drained("fixed", Pace::unknown, now);
    schedule.advance(now);
  }
  CHECK(schedule.reservation("lower") == Reservation{});
}

TEST_CASE("the next arrival is known for a steady rhythm only") {
  constexpr Time kInterval = 5 * kMillisecond;
  const auto next = [](auto pauseBefore, auto lengthOf) {
    Rhythm rhythm;
    Time now = kSecond;
    for (int i = 0; i < 9; ++i) {
      if (i < 5) CHECK(!rhythm.next());
      rhythm.came(now += pauseBefore(i));
      CHECK(!rhythm.next());
      rhythm.left(now += lengthOf(i));
    }
    const auto arrival = rhythm.next();
    return arrival ? std::array{arrival->from - now, arrival->until - now}
                   : std::array{kNever, kNever};
  };
  constexpr Time kLate = 100 * kMicrosecond;
  const auto length = [](int i) { return kMillisecond + i % 4 * 100 * kMicrosecond; };
  // A fixed time after the last answer; at a fixed rate; neither.
  CHECK(next([](int) { return kInterval; }, length) == std::array{kInterval, kInterval + kLate});
  const Time rest = kInterval - length(8);
  CHECK(next([&](int i) { return kInterval - length((i + 3) % 4); }, length) ==
        std::array{rest, rest + kLate});
  CHECK(next([](int i) { return kInterval + i % 3 * kMillisecond; }, length)[0] == kNever);
  // The pauses differ by less than half a millisecond, but by more than a quarter of them.
  CHECK(next([](int i) { return kMillisecond + i % 2 * 300 * kMicrosecond; },
             [](int i) { return i / 2 % 2 * 300 * kMicrosecond; })[0] == kNever);
}

TEST_CASE("windows are shorter at higher priority") {
  const auto windows = [](int priority) {
    Simulation simulation({batch("a", terms(50, Policy::burst, priority)),
                           batch("b", terms(50, Policy::burst, priority))});
    simulation.run(kPlayed);
    CHECK(simulation.share("a") == near(50));
    return simulation.schedule.use("a").windows;
  };
  CHECK(windows(100) > windows(0));
  CHECK(windows(0) > windows(-100));
}

TEST_CASE("the length of a window can change") {
  Simulation simulation({batch("a", terms(50)), batch("b", terms(50))});
  const auto windows = [&] {
    const auto before = simulation.schedule.use("a").windows;
    simulation.run(kPlayed);
    return simulation.schedule.use("a").windows - before;
  };
  const auto shorter = windows();
  simulation.schedule.setWindow(50 * kMillisecond);
  CHECK(windows() < shorter / 2);
  CHECK(simulation.share("a") == near(50));
}

// No tenant has two windows in a row while an equal waits, though one of them is always a little
// behind.
TEST_CASE("equal tenants take turns") {
  for (const Policy policy : {Policy::burst, Policy::fixed}) {
    Simulation simulation({decoder("a", terms(50, policy)), decoder("b", terms(50, policy))});
    simulation["b"].think += kStep;
    simulation.run(kPlayed);
    CHECK(simulation.share("a") == near(50));
    CHECK(simulation.share("b") == near(50));
    for (const Tenant& t : simulation.tenants) CHECK(t.longestWait <= Timing{}.window + t.kernel);
  }
  // A closed tenant is not opened again before the other.
  Simulation unlike({batch("a", terms(50)), batch("b", terms(50), 2 * kMillisecond)});
  std::string last, closed;
  for (int step = 0; step < 100'000; ++step) {
    unlike.run(kStep);
    std::string holder;
    for (const Tenant& t : unlike.tenants)
      holder += unlike.grant(t.id) == Grant::window ? t.id : "";
    CHECK((holder.empty() || holder != closed));
    if (holder != last && !last.empty()) closed = last;
    last = holder;
  }
}

// Two of them have windows of three times the length, four of one and a half times, but none beside
// a tenant that pauses, however long its requests take.
TEST_CASE("tenants that seldom pause have longer windows") {
  const Time length = Timing{}.window;
  const auto windowsOf = [](std::vector<Tenant> tenants) {
    Simulation simulation(std::move(tenants));
    simulation.run(kPlayed);
    return simulation.schedule.use("a").windows;
  };
  const Time kernel = 50 * kMicrosecond;
  const std::uint64_t four = windowsOf({batch("a", terms(25), kernel), batch("b", terms(25)),
                                        batch("c", terms(25)), batch("d", terms(25))});
  CHECK(four <= static_cast<std::uint64_t>(kPlayed / (6 * length)) + 4);
  CHECK(four >= static_cast<std::uint64_t>(kPlayed / (9 * length)));
  Tenant asks = batch("b", terms(50), 2 * kMillisecond);
  asks.think = 100 * kMicrosecond;
  CHECK(windowsOf({batch("a", terms(50)), asks}) >=
        static_cast<std::uint64_t>(kPlayed / (3 * length)));
  Simulation busy({batch("a", terms(50)), batch("b", terms(50))});
  busy.run(kPlayed);
  CHECK(busy.schedule.use("a").windows <= static_cast<std::uint64_t>(kPlayed / (5 * length)));
  busy.tenants.push_back(batch("asks", terms(50), 100 * kMicrosecond));
  busy["asks"].think = kMillisecond;
  busy.schedule.put("asks", terms(50), busy.now);
  const std::uint64_t before = busy.schedule.use("a").windows;
  busy.run(kPlayed);
  CHECK(busy["asks"].longestWait <= length + Timing{}.queue + 2 * kMillisecond);
  CHECK(busy.schedule.use("a").windows - before >=
        static_cast<std::uint64_t>(kPlayed / (3 * length)));

  // Nor beside a tenant that asks so seldom that its next request is not expected.
  for (Time think = 700 * kMillisecond; think < 710 * kMillisecond; think += 900 * kMicrosecond) {
    Simulation seldom({batch("a", terms(50)), batch("b", terms(50)),
                       batch("asks", terms(50), 100 * kMicrosecond)});
    seldom["asks"].think = think;
    seldom.run(kPlayed);
    CHECK(seldom["asks"].longestWait <= length + Timing{}.queue + kMillisecond);
  }

  // Shares are as exact as before, over each second.
  for (const int weight : {10, 25}) {
    Simulation unlike({batch("small", terms(weight)), batch("large", terms(100 - weight))});
    for (int second = 0; second < 5; ++second) {
      const Time before = unlike.charged("small");
      unlike.run(kSecond);
      CHECK(100.0 * static_cast<double>(unlike.charged("small") - before) / kSecond ==
            near(weight, 1));
    }
  }
}

TEST_CASE("tenants that all pause often hand over at a pause") {
  const auto play = [](const std::vector<int>& weights) {
    std::vector<Tenant> tenants;
    for (const int weight : weights) {
      const auto id = static_cast<char>('a' + tenants.size());
      tenants.push_back(decoder(std::string(1, id), terms(weight)));
    }
    Simulation simulation(std::move(tenants));
    simulation.run(100 * kMillisecond);  // until the pauses are known
    for (Tenant& t : simulation.tenants) t.longestWait = 0;
    simulation.run(kPlayed);
    return simulation;
  };
  const Timing timing;
  const Time round = 240 * kMicrosecond;
  for (const int count : {2, 4}) {
    const Time least = std::max(timing.pausingTurn / count, timing.shortestPausing);
    const std::vector<int> weights(static_cast<std::size_t>(count), 100 / count);
    const Simulation decoders = play(weights);
    CHECK(worked(decoders) > kPlayed * 74 / 100);  // alone: three quarters
    for (const Tenant& t : decoders.tenants) {
      CHECK(t.longestWait < (count - 1) * (least + round));
      CHECK(decoders.share(t.id) == near(100 / count, 1));
    }
  }
  Simulation unlike = play({25, 75});
  CHECK(unlike.share("a") == near(25, 1));
  CHECK(unlike["a"].longestWait < 3 * timing.pausingTurn);
  // Beside a batch job, windows are as long as ever.
  Simulation mixed({decoder("a", terms(50)), batch("b", terms(50))});
  mixed.run(kPlayed);
  CHECK(mixed.schedule.use("a").windows <= static_cast<std::uint64_t>(kPlayed / timing.window));
}

TEST_CASE("a gang has all of its GPUs at the same time") {
  const std::vector<std::string> both{"first", "second"};
  Simulation simulation({batch("gang", terms(50, Policy::burst, 0, both)),
                         batch("one", terms(50, Policy::burst, 0, {"first"})),
                         batch("two", terms(50, Policy::burst, 0, {"second"}), 2 * kMillisecond)});
  simulation.run(kPlayed);
  CHECK(simulation.share("gang") == near(50, 4));
  CHECK(simulation.share("one") == near(50, 4));
  CHECK(simulation.share("two") == near(50, 4));
  Simulation gangs({batch("a", terms(25, Policy::burst, 0, both)),
                    batch("b", terms(75, Policy::burst, 0, {"second", "first"}))});
  gangs.run(kPlayed);
  CHECK(gangs.share("a") == near(25));
  CHECK(gangs.share("b") == near(75));
}

// The gate closed between them. The turn that ends this comes soon, although what spins is charged.
// A gang that spins for ever gets little by that.
TEST_CASE("a gang whose kernels wait for each other soon has a turn") {
  const std::vector<std::string> both{"first", "second"};
  Schedule schedule;
  schedule.put("gang", terms(25, Policy::burst, 0, both), 0);
  schedule.put("other", terms(75, Policy::burst, 0, both), 0);
  Time now = kSecond;
  const auto has = [&](const std::string& id) { return schedule.order(id).grant != Grant::closed; };
  const auto step = [&] {
    schedule.advance(now += kMillisecond / 2);
    if (!has("gang")) schedule.setDemand("gang", Demand::waiting, now);
    if (!has("other"))
      schedule.drained("other", Pace::unknown, now),
          schedule.setDemand("other", Demand::waiting, now);
  };
  schedule.setDemand("gang", Demand::waiting, now);
  schedule.advance(now);
  schedule.setDemand("other", Demand::waiting, now);
  for (step(); has("gang");) step();
  const Time parted = now;
  while (!has("gang") && now < parted + kSecond) step();
  CHECK(has("gang"));
  CHECK(now - parted < 50 * kMillisecond);
  const Time before = schedule.use("gang").granted;
  for (const Time end = now + 5 * kSecond; now < end;) step();
  CHECK(schedule.use("gang").granted - before < 5 * kSecond * 4 / 100);
}

TEST_CASE("the death of a tenant releases the GPU") {
  Simulation simulation({batch("a", terms(50)), batch("b", terms(50))});
  for (int death = 0; death < 20; ++death) {
    simulation.run(37 * kMillisecond + death * 410 * kMicrosecond);
    const Time before = simulation["b"].done;
    simulation.kill("a");
    simulation.run(10 * kMillisecond);
    CHECK(simulation["b"].done - before >= 9 * kMillisecond);
    simulation.tenants.push_back(batch("a", terms(50)));
    simulation.schedule.put("a", terms(50), simulation.now);
  }
}

TEST_CASE("a window stays open between two timed events, for one millisecond at most") {
  Schedule schedule;
  schedule.put("a", terms(50), 0);
  schedule.put("b", terms(50), 0);
  schedule.setDemand("a", Demand::waiting, 0);
  schedule.setDemand("b", Demand::waiting, 0);
  schedule.advance(0);
  const Time end = schedule.deadline();
  CHECK(end == 5 * kMillisecond);
  CHECK(schedule.order("a").grant == Grant::window);
  schedule.recorded("a", end - 100 * kMicrosecond);
  CHECK(schedule.advance(end).empty());
  CHECK(schedule.deadline() == end + 900 * kMicrosecond);
  schedule.recorded("a", end + 800 * kMicrosecond);  // only once in a window
  CHECK(schedule.advance(schedule.deadline()).size() == 1);
  CHECK(schedule.order("a").grant == Grant::closed);
}

TEST_CASE("terms can change") {
  Simulation simulation({batch("a", terms(50)), batch("b", terms(50))});
  simulation.run(kSecond);
  simulation.schedule.put("a", terms(25), simulation.now);
  simulation.schedule.put("b", terms(75, Policy::fixed), simulation.now);
  const Time before = simulation.charged("a");
  simulation.run(kSecond);
  CHECK(100.0 * static_cast<double>(simulation.charged("a") - before) / kSecond == near(25, 3));
  simulation.schedule.put("a", terms(25, Policy::fixed, 0, {"elsewhere"}), simulation.now);
  simulation.tenants[0].terms.gpus = {"elsewhere"};
  simulation.run(kSecond);
  CHECK(simulation.grant("b") != Grant::open);  // a fixed share is limited even alone
  CHECK(simulation.charged("a") > before);
}

TEST_CASE("64 tenants have equal shares") {
  std::vector<Tenant> many;
  for (int i = 0; i < 64; ++i)
    many.push_back(batch("tenant " + std::to_string(i), terms(1), 100 * kMicrosecond));
  Simulation simulation(std::move(many));
  simulation.run(4 * kSecond);
  for (const Tenant& t : simulation.tenants) CHECK(simulation.share(t.id) == near(100.0 / 64, 0.4));
}

}  // namespace
}  // namespace arbiter::test
