// One thread in each interval may report.
#include "native/worker/reports/rate_limit.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

namespace {

using worker::RateLimit;

TEST_CASE("a report is allowed again after the interval") {
  RateLimit limit;
  const auto now = RateLimit::Clock::now();
  CHECK(limit.allows(now));
  CHECK(!limit.allows(now));
  CHECK(!limit.allows(now + RateLimit::kInterval - std::chrono::nanoseconds(1)));
  CHECK(limit.allows(now + RateLimit::kInterval));
  CHECK(!limit.allows(now + RateLimit::kInterval));
}

TEST_CASE("one of several threads may report") {
  RateLimit limit;
  const auto now = RateLimit::Clock::now();
  std::atomic<int> said{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) said += limit.allows(now) ? 1 : 0;
    });
  for (auto& thread : threads) thread.join();
  CHECK(said == 1);
}

}  // namespace
