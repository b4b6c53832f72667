// What is known of one shape is lost to others only where too many of them meet.
#include "native/worker/gate/durations.h"

#include "wire/test/check.h"

namespace {

using worker::Durations;

void testKnown() {
  Durations durations;
  const std::uint64_t shape = worker::shapeOf({1, 2, 3});
  CHECK(durations.at(durations.find(shape)) == Durations::kUnknown);
  durations.set(durations.find(shape), 5'000);
  CHECK(durations.at(durations.find(shape)) == 5'000 &&
        durations.at(durations.find(worker::shapeOf({1, 2, 4}))) == Durations::kUnknown);
}

/// The lower half of a shape decides where it stands, the upper half which of those there it is.
std::uint64_t thatMeet(std::uint64_t number) { return number << 32 | 77; }

void testThatMeet() {
  Durations durations;
  for (std::uint64_t number = 1; number <= 4; ++number)
    durations.set(durations.find(thatMeet(number)), 1'000.0 * static_cast<double>(number));
  for (std::uint64_t number = 1; number <= 4; ++number)
    CHECK(durations.at(durations.find(thatMeet(number))) == 1'000 * number);
  CHECK(durations.at(durations.find(thatMeet(5))) == Durations::kUnknown);
  durations.set(durations.find(thatMeet(5)), 5'000);
  for (const std::uint64_t number : {2u, 3u, 4u, 5u})
    CHECK(durations.at(durations.find(thatMeet(number))) == 1'000 * number);
  CHECK(durations.at(durations.find(thatMeet(1))) == Durations::kUnknown);
}

/// A network's launches, step after step.
void testNetwork() {
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

int main() {
  testKnown();
  testThatMeet();
  testNetwork();
  return wire::test::checkedResult();
}
