#include "interposer/session/unready.h"

#include <doctest/doctest.h>

using interposer::Unready;

TEST_CASE("that work is under way is repeated for its object and a short time") {
  const auto context = reinterpret_cast<CUcontext>(8);
  constexpr std::uint64_t kNow = 1'000'000, kEnd = kNow + Unready::kRepeatNanoseconds;
  Unready unready;
  CHECK(!unready.holds(context, 40, 5, 0));
  unready.note(context, 40, 5, kNow);
  CHECK(unready.holds(context, 40, 5, kEnd - 1));
  CHECK(!unready.holds(context, 40, 5, kEnd));
  CHECK(!unready.holds(context, 41, 5, kNow));
  CHECK(!unready.holds(nullptr, 40, 5, kNow));
  CHECK(!unready.holds(context, 40, 6, kNow));
  unready.forget();
  CHECK(!unready.holds(context, 40, 5, kNow));
}
