// Which block a stream gets from a pool.
#include "native/worker/memory/pool_blocks.h"

#include <map>
#include <random>
#include <vector>

#include "test/unit/program.h"

namespace {

using worker::PoolBlocks;

constexpr CUdeviceptr kRange = 1 << 20, kOther = 1 << 24;
constexpr std::uint64_t kBytes = 1000;

struct Pool {
  PoolBlocks blocks;
  std::uintptr_t last = 0;

  Pool() { blocks.addRange(kRange, kBytes, 1); }
  PoolBlocks::Work behind(std::uint64_t stream) {
    return {.stream = {stream}, .event = reinterpret_cast<CUevent>(++last)};
  }
  void end(std::uint64_t stream) {
    blocks.forget([&](const PoolBlocks::Work& work) { return work.stream.number == stream; });
  }
};

}  // namespace

TEST_CASE_FIXTURE(Pool, "a block is cut from the smallest free one, and joined to its neighbours") {
  blocks.addRange(kOther, 100, 2);
  CHECK(blocks.take(101, {1}) == kRange);
  CHECK(blocks.take(100, {1}) == kOther);
  CHECK(blocks.take(100, {1}) == kRange + 101);
  CHECK(blocks.take(1000, {1}) == 0);
  CHECK(blocks.idleRanges().empty());
  CHECK(blocks.give(kRange, {}) == 101);
  CHECK(blocks.give(kRange, {}) == 0);
  CHECK(blocks.give(kRange + 101, {}) == 100);
  CHECK(blocks.idleRanges() == std::vector<CUdeviceptr>{kRange});
  CHECK(blocks.take(1000, {1}) == kRange);
}

TEST_CASE_FIXTURE(Pool, "a stream may use at once what it has freed; others wait for its work") {
  CHECK(blocks.take(600, {1}) == kRange);
  CHECK(blocks.take(400, {2}) == kRange + 600);
  CHECK(blocks.give(kRange, behind(1)) == 600);
  CHECK(blocks.give(kRange + 600, behind(2)) == 400);
  CHECK(blocks.behindWork() == 1000);
  CHECK(blocks.take(1000, {1}) == 0);  // not joined: they are behind different work
  CHECK(blocks.take(600, {2}) == 0);
  CHECK(blocks.take(100, {1}) == kRange);
  CHECK(blocks.take(400, {2}) == kRange + 600);
  CHECK(blocks.take(400, {3}) == 0);
  end(1);
  CHECK(blocks.behindWork() == 0);
  CHECK(blocks.take(400, {3}) == kRange + 100);
}

TEST_CASE_FIXTURE(Pool, "blocks behind work of one stream are joined behind the later event") {
  CHECK(blocks.take(400, {1}) == kRange);
  CHECK(blocks.take(600, {1}) == kRange + 400);
  const auto early = behind(1), late = behind(1);
  CHECK(blocks.give(kRange + 400, early) == 600);
  CHECK(blocks.give(kRange, late) == 400);
  const auto events = blocks.takeEvents();
  REQUIRE(events.size() == 1);
  CHECK(events[0].event == early.event);
  CHECK(blocks.idleRanges().empty());
  blocks.forget([&](const PoolBlocks::Work& work) { return work.event == late.event; });
  CHECK(blocks.idleRanges().size() == 1);
  CHECK(blocks.takeEvents().size() == 1);
  blocks.removeRange(kRange);
  CHECK(blocks.take(1, {1}) == 0);
}

TEST_CASE_FIXTURE(Pool, "a block that is taken behind work and given back without is behind it") {
  CHECK(blocks.take(1000, {1}) == kRange);
  const auto early = behind(1), late = behind(1);
  CHECK(blocks.give(kRange, early) == 1000);
  CHECK(blocks.take(400, {1}) == kRange);
  CHECK(blocks.take(600, {1}) == kRange + 400);
  CHECK(blocks.takeEvents().empty());
  CHECK(blocks.give(kRange, {}) == 400);
  CHECK(blocks.behindWork() == 400);
  CHECK(blocks.take(400, {2}) == 0);
  CHECK(blocks.give(kRange + 400, late) == 600);
  CHECK(blocks.takeEvents().size() == 1);  // of both blocks, which are one behind the later event
  blocks.forget([&](const PoolBlocks::Work& work) { return work.event == early.event; });
  CHECK(blocks.take(1000, {2}) == 0);
  blocks.forget([&](const PoolBlocks::Work& work) { return work.event == late.event; });
  CHECK(blocks.take(1000, {2}) == kRange);
  CHECK(blocks.takeEvents().size() == 1);
}

TEST_CASE_FIXTURE(Pool, "an earlier event that returns does not replace the later one beside it") {
  CHECK(blocks.take(1000, {1}) == kRange);
  const auto early = behind(1), late = behind(1);
  CHECK(blocks.give(kRange, early) == 1000);
  CHECK(blocks.take(400, {1}) == kRange);
  CHECK(blocks.take(600, {1}) == kRange + 400);
  CHECK(blocks.give(kRange + 400, late) == 600);
  CHECK(blocks.give(kRange, {}) == 400);
  blocks.forget([&](const PoolBlocks::Work& work) { return work.event == early.event; });
  CHECK(blocks.take(600, {2}) == 0);
  blocks.forget([&](const PoolBlocks::Work& work) { return work.event == late.event; });
  CHECK(blocks.take(1000, {2}) == kRange);
}

TEST_CASE_FIXTURE(Pool, "work that has ended is forgotten for blocks that were taken behind it") {
  CHECK(blocks.take(1000, {1}) == kRange);
  CHECK(blocks.give(kRange, behind(1)) == 1000);
  CHECK(blocks.take(1000, {1}) == kRange);
  end(1);
  CHECK(blocks.takeEvents().size() == 1);
  CHECK(blocks.give(kRange, {}) == 1000);
  CHECK(blocks.idleRanges().size() == 1);
  CHECK(blocks.take(1000, {2}) == kRange);
}

TEST_CASE_FIXTURE(Pool, "a block may lie in several ranges of an area, and each range ends alone") {
  blocks.addRange(kRange + kBytes, kBytes, 1);
  blocks.addRange(kRange + 2 * kBytes, kBytes, 2);
  CHECK(blocks.take(2 * kBytes + 1, {1}) == 0);
  CHECK(blocks.take(2 * kBytes, {1}) == kRange);
  CHECK(blocks.idleRanges() == std::vector<CUdeviceptr>{kRange + 2 * kBytes});
  CHECK(blocks.give(kRange, {}) == 2 * kBytes);
  CHECK(blocks.idleBefore(kRange + 2 * kBytes) == 2 * kBytes);
  blocks.removeRange(kRange);
  CHECK(blocks.idleBefore(kRange + kBytes) == 0);
  CHECK(blocks.idleBefore(kRange + 2 * kBytes) == kBytes);
  CHECK(blocks.idleRanges().size() == 2);
  CHECK(blocks.take(kBytes, {1}) == kRange + kBytes);
}

TEST_CASE("over many steps, no two blocks overlap and no stream gets what another may still use") {
  std::mt19937 random(7);
  Pool pool;
  pool.blocks.addRange(kRange + kBytes, kBytes, 1);
  struct Taken {
    std::uint64_t bytes, stream;
  };
  std::map<CUdeviceptr, Taken> taken;
  /// The last stream whose work may use each byte, 0 if none does.
  std::map<CUdeviceptr, std::uint64_t> usedBy;
  std::size_t events = 0;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t stream = 1 + random() % 3;
    switch (random() % 4) {
      case 0:
      case 1: {
        const std::uint64_t bytes = 1 + random() % 200;
        const CUdeviceptr begin = pool.blocks.take(bytes, {stream});
        if (begin == 0) break;
        for (CUdeviceptr at = begin; at < begin + bytes; ++at)
          REQUIRE((usedBy[at] == 0 || usedBy[at] == stream));
        const auto next = taken.lower_bound(begin);
        REQUIRE((next == taken.end() || next->first >= begin + bytes));
        if (next != taken.begin()) {
          const auto& [before, block] = *std::prev(next);
          REQUIRE(before + block.bytes <= begin);
        }
        taken[begin] = {bytes, stream};
        break;
      }
      case 2: {
        if (taken.empty()) break;
        auto victim = taken.lower_bound(kRange + random() % (2 * kBytes));
        if (victim == taken.end()) victim = taken.begin();
        const auto [begin, block] = *victim;
        const bool unused = random() % 2 == 0;
        const auto work = unused ? PoolBlocks::Work{} : pool.behind(block.stream);
        REQUIRE(pool.blocks.give(begin, work) == block.bytes);
        if (!unused)
          for (CUdeviceptr at = begin; at < begin + block.bytes; ++at) usedBy[at] = block.stream;
        taken.erase(victim);
        break;
      }
      default:
        pool.end(stream);
        for (auto& [at, by] : usedBy)
          if (by == stream) by = 0;
    }
    events += pool.blocks.takeEvents().size();
  }
  for (const auto& [begin, block] : taken) pool.blocks.give(begin, {});
  for (const std::uint64_t stream : {1, 2, 3}) pool.end(stream);
  CHECK(pool.blocks.idleRanges().size() == 2);
  CHECK(pool.blocks.idleBefore(kRange + 2 * kBytes) == 2 * kBytes);
  CHECK(events + pool.blocks.takeEvents().size() == pool.last);
}
