#include "native/worker/gate/self_limit.h"

#include <algorithm>

namespace worker {

namespace {

constexpr std::int64_t kMillion = 1'000'000;
/// Period of the fixed share in ns, equal to the arbiter's (schedule.h, Timing::fixedPeriod). At
/// most one period's share is saved up; a window begins with half of that.
constexpr std::int64_t kPeriod = 100'000'000;
constexpr std::uint64_t kForEver = ~std::uint64_t{0};
/// Limit in ns that prevents overflow below. In that time the bucket fills anyway.
constexpr std::uint64_t kLongestStep = 1'000'000'000'000;

}  // namespace

arbiter::Grant SelfLimit::decide(const State& state, std::uint64_t now) {
  const std::int64_t share = std::clamp<std::int64_t>(state.share, 1, kMillion);
  const std::int64_t most = kPeriod / kMillion * share, least = most / 2;
  const auto passed =
      settled_ == 0 ? 0 : static_cast<std::int64_t>(std::min(now - settled_, kLongestStep));
  settled_ = now;
  tokens_ = std::min(tokens_ + passed * share / kMillion, most);
  const bool inside = state.grant == arbiter::Grant::window;
  if (inside || state.running) tokens_ -= passed;
  const bool window = inside ? tokens_ > 0 && (state.running || state.waiting)
                             : state.waiting && !state.running && tokens_ >= least;
  rest_ = kForEver;
  if (window)
    rest_ = static_cast<std::uint64_t>(std::max<std::int64_t>(tokens_, 1));
  else if (state.waiting && tokens_ < least)
    rest_ = static_cast<std::uint64_t>((least - tokens_) * kMillion / share + 1);
  return window ? arbiter::Grant::window : arbiter::Grant::closed;
}

}  // namespace worker
