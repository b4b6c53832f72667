// Samples behind an open gate, in virtual time.
#include "native/worker/gate/sampling.h"

#include <doctest/doctest.h>

#include <functional>

namespace {

using worker::Sampling;

constexpr std::uint64_t kMillisecond = 1'000'000, kSecond = 1000 * kMillisecond;

struct Played {
  std::uint64_t used = 0, samples = 0;
};

/// Samples for 20 s. `runs`: whether work runs at that time.
Played play(const std::function<bool(std::uint64_t now)>& runs, std::size_t streams = 1) {
  constexpr std::uint64_t kBegin = 7 * kSecond, kEnd = kBegin + 20 * kSecond;
  Sampling sampling(1);
  Played played;
  for (std::uint64_t now = kBegin; now < kEnd; now += sampling.rest(now)) {
    if (!sampling.isDue(now)) continue;
    ++played.samples;
    if (runs(now)) played.used += sampling.covers(now);
    sampling.taken(now, streams);
  }
  return played;
}

TEST_CASE("work that always runs is counted with its whole time") {
  const Played played = play([](std::uint64_t) { return true; });
  CHECK(played.used >= 20 * kSecond - 2 * Sampling::kInterval);
  CHECK(played.used <= 20 * kSecond + Sampling::kInterval);
}

TEST_CASE("a short piece of work now and then counts little") {
  const Played played =
      play([](std::uint64_t now) { return now % (30 * kMillisecond) < kMillisecond / 10; });
  CHECK(played.used < kSecond);
}

TEST_CASE("samples do not follow a program's period") {
  for (const std::uint64_t phase : {0, 3, 5, 8}) {
    const Played played = play([&](std::uint64_t now) {
      return (now + phase * kMillisecond) % Sampling::kInterval < Sampling::kInterval / 2;
    });
    CHECK(played.used > 9 * kSecond);
    CHECK(played.used < 11 * kSecond);
  }
}

TEST_CASE("the first sample after a pause stands for a mean interval") {
  Sampling sampling(1);
  std::uint64_t now = kSecond;
  for (int round = 0; round < 3; ++round) {
    if (!sampling.isDue(now)) now += sampling.rest(now);
    CHECK(sampling.isDue(now));
    CHECK(sampling.covers(now) == Sampling::kInterval);
    sampling.taken(now, 1);
    sampling.stop();
    now += 3600 * kSecond;
  }
}

TEST_CASE("a program with many streams is asked less often") {
  const auto always = [](std::uint64_t) { return true; };
  CHECK(play(always, 1000).samples < play(always).samples / 2);
}

}  // namespace
