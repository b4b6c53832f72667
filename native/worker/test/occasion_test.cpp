// What is news is said once by whichever thread comes first, and again after a while.
#include "native/worker/occasion.h"

#include <thread>
#include <vector>

#include "wire/test/check.h"

namespace {

using worker::Occasion;

void testAgainAfterAWhile() {
  Occasion occasion;
  const auto now = Occasion::Clock::now();
  CHECK(occasion.due(now) && !occasion.due(now) && !occasion.due(now + Occasion::kPause - std::chrono::nanoseconds(1)));
  CHECK(occasion.due(now + Occasion::kPause) && !occasion.due(now + Occasion::kPause));
}

void testThreads() {
  Occasion occasion;
  const auto now = Occasion::Clock::now();
  std::atomic<int> said{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) said += occasion.due(now) ? 1 : 0;
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
