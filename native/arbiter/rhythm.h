// Predicts the next arrival of an allocation with periodic work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

namespace arbiter {

/// Nanoseconds.
using Time = std::int64_t;
inline constexpr Time kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

/// Remembers the last few arrivals. Requests come at a fixed rate, or at a fixed time after the
/// last answer. The prediction uses whichever varies less.
class Rhythm {
 public:
  /// The allocation has work from now on. Ignored if it already had.
  void came(Time now);
  /// The allocation has no work any more.
  void left(Time now);

  struct Arrival {
    Time from, until;  ///< earliest and latest expected time
  };
  /// The next arrival. Empty while the allocation has work, or if its arrivals are irregular.
  std::optional<Arrival> next() const;
  Time lastLeft() const { return left_; }

 private:
  static constexpr std::size_t kArrivals = 4;
  using Times = std::array<Time, kArrivals>;
  Times intervals_{}, pauses_{};  ///< times between arrivals; idle times before them
  std::size_t arrivals_ = 0;
  bool here_ = false;
  Time came_ = 0, left_ = 0;
};

}  // namespace arbiter
