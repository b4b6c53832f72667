#include "native/arbiter/rhythm.h"

#include <algorithm>

namespace arbiter {

namespace {

/// What varies by more is no rhythm: the time kept free would cost the others more than it is worth.
constexpr Time kMostSpread = 500 * kMicrosecond;
/// Of the least of the times, the same.
constexpr Time kMostPart = 4;
/// So much later than ever it is still waited for.
constexpr Time kLate = 100 * kMicrosecond;

struct Range {
  Time least, most;
  Time spread() const { return most - least; }
  bool isRegular() const { return spread() <= std::min(kMostSpread, least / kMostPart); }
};

template <class Times>
Range rangeOf(const Times& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*least, *most};
}

}  // namespace

void Rhythm::came(Time now, Time left) {
  // The first arrival has none before it.
  if (arrivals_++ > 0) {
    const std::size_t place = arrivals_ % kArrivals;
    intervals_[place] = now - last_;
    pauses_[place] = now - left;
  }
  last_ = now;
}

Reservation Rhythm::next(Time left) const {
  if (arrivals_ <= kArrivals) return {};
  const Range interval = rangeOf(intervals_), pause = rangeOf(pauses_);
  const bool byInterval = interval.spread() < pause.spread();
  const Range& range = byInterval ? interval : pause;
  if (!range.isRegular()) return {};
  const Time since = byInterval ? last_ : left;
  return {since + range.least, since + range.most + kLate, pause.least / 2};
}

}  // namespace arbiter
