// One thread reports, and again after the interval.
#include "native/worker/reports/rate_limit.h"

#include <thread>
#include <vector>

#include "wire/test/check.h"

namespace {

using worker::RateLimit;

void testAgainAfterAWhile() {
  RateLimit limit;
  const auto now = RateLimit::Clock::now();
  CHECK(limit.allows(now) && !limit.allows(now) &&
        !limit.allows(now + RateLimit::kInterval - std::chrono::nanoseconds(1)));
  CHECK(limit.allows(now + RateLimit::kInterval) && !limit.allows(now + RateLimit::kInterval));
}

void testThreads() {
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

int main() {
  testAgainAfterAWhile();
  testThreads();
  return wire::test::checkedResult();
}
