// When one that comes again and again is likely to come next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace arbiter {

/// Nanoseconds.
using Time = std::int64_t;
inline constexpr Time kMicrosecond = 1'000, kMillisecond = 1'000'000, kSecond = 1'000'000'000;
inline constexpr Time kNever = std::numeric_limits<Time>::max();

/// A time that lower ones are to leave free.
struct Reservation {
  Time from = kNever, until = kNever;
  Time longest = 0;  ///< work that takes longer has no better moment, and is not held back
  bool operator==(const Reservation&) const = default;
};

/// Remembers the last few arrivals. Requests come at a fixed rate, or so long after the answer to the last one: what varies less is
/// believed.
class Rhythm {
 public:
  /// It has come; it had left then.
  void came(Time now, Time left);
  /// The time of the next arrival, after it left then; kNever while it comes irregularly.
  Reservation next(Time left) const;

 private:
  static constexpr std::size_t kArrivals = 4;
  using Times = std::array<Time, kArrivals>;
  Times intervals_{}, pauses_{};  ///< between arrivals; before them
  std::size_t arrivals_ = 0;
  Time last_ = 0;
};

}  // namespace arbiter
