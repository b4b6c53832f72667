// Pages that small allocations share.
#include "native/worker/memory/free_ranges.h"

#include <map>
#include <random>

#include "test/unit/program.h"

namespace {

using worker::FreeRanges;

constexpr std::uint64_t kPage = FreeRanges::kPage;

}  // namespace

TEST_CASE("a request takes the smallest range that suffices") {
  FreeRanges free;
  CHECK(free.take(512) == 0);
  free.addPage(kPage);
  const std::uint64_t first = free.take(4096), second = free.take(512), third = free.take(8192);
  CHECK(first == kPage);
  CHECK(second == first + 4096);
  CHECK(third == second + 512);
  CHECK_FALSE(free.give(first, 4096));
  CHECK(free.take(1024) == first);
  CHECK(free.take(4096) == third + 8192);
  CHECK(free.take(3072) == first + 1024);
  CHECK(free.take(kPage) == 0);
}

TEST_CASE("one page that is free as a whole is kept, and neighbouring pages are not joined") {
  FreeRanges free;
  free.addPage(kPage);
  free.addPage(2 * kPage);
  CHECK(free.take(kPage) == kPage);
  CHECK(free.take(kPage) == 2 * kPage);
  CHECK_FALSE(free.give(kPage, kPage));
  CHECK(free.give(2 * kPage, kPage));
  CHECK(free.take(kPage) == kPage);
  CHECK(free.take(512) == 0);
}

TEST_CASE("no byte is given twice, and every page becomes whole again") {
  FreeRanges free;
  std::mt19937_64 random(7);
  std::map<std::uint64_t, std::uint64_t> taken;
  std::uint64_t pages = 0, removed = 0;
  for (int round = 0; round < 20'000; ++round) {
    if (!taken.empty() && random() % 2 == 0) {
      const auto one = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      removed += free.give(one->first, one->second) ? 1 : 0;
      taken.erase(one);
      continue;
    }
    const std::uint64_t bytes = (random() % 200 + 1) * 512;
    std::uint64_t begin = free.take(bytes);
    if (begin == 0) {
      free.addPage(++pages * kPage);
      begin = free.take(bytes);
    }
    const auto next = taken.lower_bound(begin);
    CHECK((next == taken.end() || begin + bytes <= next->first));
    CHECK((next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= begin));
    CHECK(begin / kPage == (begin + bytes - 1) / kPage);
    taken.emplace(begin, bytes);
  }
  for (const auto& [begin, bytes] : taken) removed += free.give(begin, bytes) ? 1 : 0;
  CHECK(removed + 1 == pages);
}
