#include "interposer/session/completed.h"

#include <doctest/doctest.h>

using interposer::Completed;

namespace {

const auto kContext = reinterpret_cast<CUcontext>(8);
const auto kOther = reinterpret_cast<CUcontext>(16);
constexpr std::uint64_t kNow = 1'000'000'000;

}  // namespace

TEST_CASE("an answer is repeated for its object, in its context, for a short time") {
  Completed completed;
  CHECK(!completed.holds(kContext, 40, 5, kNow));
  completed.note(kContext, 40, 5, kNow);
  CHECK(completed.holds(kContext, 40, 5, kNow));
  CHECK(completed.holds(kContext, 40, 5, kNow + Completed::kRepeatNanoseconds - 1));
  CHECK(!completed.holds(kContext, 40, 5, kNow + Completed::kRepeatNanoseconds));
  CHECK(!completed.holds(kOther, 40, 5, kNow));
  CHECK(!completed.holds(nullptr, 40, 5, kNow));
}

TEST_CASE("an answer ends with the next change") {
  Completed completed;
  completed.note(kContext, 40, 5, kNow);
  CHECK(!completed.holds(kContext, 40, 6, kNow));
  CHECK(!completed.holds(kContext, 40, 4, kNow));
}

TEST_CASE("objects that share a place are told apart") {
  Completed completed;
  for (std::uint64_t object = 1; object <= 64; ++object) {
    completed.note(kContext, object, 5, kNow);
    CHECK(completed.holds(kContext, object, 5, kNow));
    for (std::uint64_t other = object + 1; other <= 65; ++other)
      CHECK(!completed.holds(kContext, other, 5, kNow));
  }
}

TEST_CASE("the load is known of one context until the next change") {
  Completed completed;
  CHECK(completed.load(kContext, 0) == Completed::kBusy);
  CHECK(completed.load(nullptr, 0) == Completed::kBusy);
  completed.noteLoad(kContext, 7, Completed::kIdle);
  CHECK(completed.load(kContext, 7) == Completed::kIdle);
  CHECK(completed.load(kContext, 8) == Completed::kBusy);
  CHECK(completed.load(kOther, 7) == Completed::kBusy);
  completed.noteLoad(kContext, 8, Completed::kQuiet);
  CHECK(completed.load(kContext, 8) == Completed::kQuiet);
}

TEST_CASE("a stream has nothing to wait for behind a copy that has ended, until the next change") {
  Completed completed;
  CHECK(completed.endedUntil(kContext, 40, 5) == 0);
  completed.noteEnded(kContext, 40, 5, kNow);
  CHECK(completed.endedUntil(kContext, 40, 5) == kNow + Completed::kRepeatNanoseconds);
  CHECK(completed.endedUntil(kContext, 40, 6) == 0);
  CHECK(completed.endedUntil(kContext, 48, 5) == 0);
  CHECK(completed.endedUntil(kOther, 40, 5) == 0);
  CHECK(!completed.holds(kContext, 40, 5, kNow));
}

TEST_CASE("the driver may learn later than the thread that a wait has ended") {
  Completed completed;
  CHECK(completed.waitedUntil(kContext, 40, 5) == 0);
  completed.noteWaited(kContext, 40, 5, kNow);
  CHECK(completed.waitedUntil(kContext, 40, 5) == kNow);
  CHECK(completed.waitedUntil(kContext, 40, 6) == 0);
  CHECK(completed.waitedUntil(kContext, 48, 5) == 0);
  CHECK(completed.waitedUntil(kOther, 40, 5) == 0);
  CHECK(completed.endedUntil(kContext, 40, 5) == 0);
}
