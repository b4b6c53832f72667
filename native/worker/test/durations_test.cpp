// Known durations of shapes; a shape is forgotten only if more than four share a place.
#include "native/worker/gate/durations.h"

#include <doctest/doctest.h>

namespace {

using worker::Durations;

TEST_CASE("a duration is known for its shape only") {
  Durations durations;
  const std::uint64_t shape = worker::shapeOf({1, 2, 3});
  CHECK(durations.at(durations.find(shape)) == Durations::kUnknown);
  durations.set(durations.find(shape), 5'000);
  CHECK(durations.at(durations.find(shape)) == 5'000);
  CHECK(durations.at(durations.find(worker::shapeOf({1, 2, 4}))) == Durations::kUnknown);
}

/// A shape of one place: its lower half is the place.
std::uint64_t ofOnePlace(std::uint64_t number) { return number << 32 | 77; }

TEST_CASE("four shapes of one place are kept, and the fifth replaces the oldest") {
  Durations durations;
  for (std::uint64_t number = 1; number <= 4; ++number)
    durations.set(durations.find(ofOnePlace(number)), 1'000.0 * static_cast<double>(number));
  for (std::uint64_t number = 1; number <= 4; ++number)
    CHECK(durations.at(durations.find(ofOnePlace(number))) == 1'000 * number);
  CHECK(durations.at(durations.find(ofOnePlace(5))) == Durations::kUnknown);
  durations.set(durations.find(ofOnePlace(5)), 5'000);
  for (const std::uint64_t number : {2u, 3u, 4u, 5u})
    CHECK(durations.at(durations.find(ofOnePlace(number))) == 1'000 * number);
  CHECK(durations.at(durations.find(ofOnePlace(1))) == Durations::kUnknown);
}

// A network's launches, step after step.
TEST_CASE("the durations of 1,000 launches are kept") {
  Durations durations;
  unsigned unknown = 0;
  for (int step = 0; step < 3; ++step) {
    for (std::uint64_t launch = 0; launch < 1'000; ++launch) {
      const Durations::Index index = durations.find(worker::shapeOf({launch / 10, launch, 128}));
      if (durations.at(index) == Durations::kUnknown) ++unknown;
      durations.set(index, 2'000);
    }
  }
  CHECK(unknown == 1'000);
}

}  // namespace
