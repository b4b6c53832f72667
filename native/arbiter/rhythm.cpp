#include "native/arbiter/rhythm.h"

#include <algorithm>

namespace arbiter {

namespace {

/// Maximum spread of a rhythm. For a wider one, the reserved time costs the others more than it is
/// worth.
constexpr Time kMostSpread = 500 * kMicrosecond;
/// Maximum spread as a part of the shortest time: one over this.
constexpr Time kMostPart = 4;
/// Margin after the latest expected arrival.
constexpr Time kLate = 100 * kMicrosecond;

struct Range {
  Time least, most;
  /// kNever for times that are no rhythm.
  Time spread() const {
    return most - least <= std::min(kMostSpread, least / kMostPart) ? most - least : kNever;
  }
};

template <class Times>
Range rangeOf(const Times& times) {
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  return {*least, *most};
}

}  // namespace

void Rhythm::came(Time now) {
  if (here_) return;
  here_ = true;
  // The first arrival has no interval before it.
  if (arrivals_++ > 0) {
    const std::size_t place = arrivals_ % kArrivals;
    intervals_[place] = now - came_;
    pauses_[place] = now - left_;
  }
  came_ = now;
}

void Rhythm::left(Time now) {
  if (!here_) return;
  here_ = false;
  left_ = now;
}

std::optional<Rhythm::Arrival> Rhythm::next() const {
  if (here_ || arrivals_ <= kArrivals) return std::nullopt;
  const Range interval = rangeOf(intervals_), pause = rangeOf(pauses_);
  const bool byInterval = interval.spread() < pause.spread();
  const Range& range = byInterval ? interval : pause;
  if (range.spread() == kNever) return std::nullopt;
  const Time since = byInterval ? came_ : left_;
  return Arrival{since + range.least, since + range.most + kLate};
}

}  // namespace arbiter
