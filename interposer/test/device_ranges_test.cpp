#include "interposer/memory/device_ranges.h"

#include <doctest/doctest.h>

TEST_CASE("a range lies in one allocation, not across two") {
  interposer::DeviceRanges ranges;
  CHECK(!ranges.contains(0x1000, 1));
  ranges.add(0x1000, 0x100);
  ranges.add(0x1100, 0x100);  // adjacent, and still two allocations
  CHECK(ranges.contains(0x1000, 0x100));
  CHECK(ranges.contains(0x10ff, 1));
  CHECK(!ranges.contains(0x10ff, 2));
  CHECK(!ranges.contains(0x1080, 0x100));
  CHECK(!ranges.contains(0xfff, 1));
  CHECK(!ranges.contains(0x1200, 1));
  CHECK(!ranges.contains(0x1000, ~std::uint64_t{0}));
}

TEST_CASE("an allocation is known until it, its code or everything is removed") {
  interposer::DeviceRanges ranges;
  ranges.add(0x1000, 0x100);
  ranges.add(0x1100, 0x100);
  ranges.remove(0x1000);
  CHECK(!ranges.contains(0x1000, 1));
  CHECK(ranges.contains(0x1100, 0x100));
  ranges.add(0x2000, 0x100, 7);
  ranges.add(0x3000, 0x100, 8);
  ranges.removeOf([](std::uint64_t code) { return code == 7; });
  CHECK(!ranges.contains(0x2000, 1));
  CHECK(ranges.contains(0x3000, 1));
  CHECK(ranges.contains(0x1100, 1));
  ranges.clear();
  CHECK(!ranges.contains(0x1100, 1));
}
