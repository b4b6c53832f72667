// When one that comes again and again is likely to come next.
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

/// Remembers the last few arrivals. Requests come at a fixed rate, or so long after the answer to the last one: what varies less is
/// believed.
class Rhythm {
 public:
  /// It has work from now on; says nothing new of one that had some.
  void came(Time now);
  /// It has none any more.
  void left(Time now);

  struct Arrival {
    Time from, until;  ///< it is not expected before or after that
  };
  /// Nothing while it is there, or comes irregularly.
  std::optional<Arrival> next() const;
  Time lastLeft() const { return left_; }

 private:
  static constexpr std::size_t kArrivals = 4;
  using Times = std::array<Time, kArrivals>;
  Times intervals_{}, pauses_{};  ///< between arrivals; before them
  std::size_t arrivals_ = 0;
  bool here_ = false;
  Time came_ = 0, left_ = 0;
};

}  // namespace arbiter
