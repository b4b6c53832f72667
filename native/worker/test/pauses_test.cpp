// Pauses of work in windows, in virtual time.
#include "native/worker/gate/pauses.h"

#include <doctest/doctest.h>

namespace {

using arbiter::Pace;
using worker::Pauses;

constexpr std::uint64_t kStart = 1'000'000;

/// A window whose first work came, and ended.
Pauses afterFirstWork() {
  Pauses pauses;
  pauses.workEnded(kStart - 1);
  pauses.workCame(kStart);
  pauses.workEnded(kStart + 1);
  return pauses;
}

TEST_CASE("a window without work has no pace") {
  Pauses pauses;
  CHECK(pauses.paceUntil(kStart) == Pace::unknown);
  pauses.workEnded(kStart);
  CHECK(pauses.paceUntil(2 * kStart) == Pace::unknown);
}

TEST_CASE("a long gap between two pieces of work is a pause") {
  Pauses pauses = afterFirstWork();
  pauses.workCame(kStart + 1 + arbiter::kPauseNanoseconds);
  CHECK(pauses.idleSince() == 0);
  CHECK(pauses.paceUntil(2 * kStart) == Pace::pausing);
  pauses.workEnded(2 * kStart);
  pauses.workCame(2 * kStart + 1);
  CHECK(pauses.paceUntil(3 * kStart) == Pace::pausing);  // for the rest of the window
}

TEST_CASE("a short gap is no pause") {
  Pauses pauses = afterFirstWork();
  pauses.workCame(kStart + arbiter::kPauseNanoseconds);
  CHECK(pauses.paceUntil(2 * kStart) == Pace::steady);
}

TEST_CASE("a window that ends without more work ends in a pause") {
  const Pauses pauses = afterFirstWork();
  CHECK(pauses.paceUntil(kStart + arbiter::kPauseNanoseconds) == Pace::steady);
  CHECK(pauses.paceUntil(kStart + 1 + arbiter::kPauseNanoseconds) == Pace::pausing);
}

TEST_CASE("the gap before the first work of a window is no pause") {
  Pauses pauses = afterFirstWork();
  pauses.forgetPace();
  pauses.workCame(2 * kStart);
  CHECK(pauses.paceUntil(3 * kStart) == Pace::steady);
  pauses.gateOpened();
  CHECK(pauses.idleSince() == 0);
}

}  // namespace
