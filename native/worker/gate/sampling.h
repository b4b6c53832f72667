// When the gate looks at work behind an open gate, and which time each look stands for. Pure logic;
// time is an argument.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace worker {

/// Sample times are random, so that they do not follow a program's period. A sample stands for the
/// time since the one before; the first after stop(), for a mean interval. Nanoseconds.
class Sampling {
 public:
  /// Mean interval of samples.
  static constexpr std::uint64_t kInterval = 10'000'000;

  explicit Sampling(std::uint64_t seed)
      : random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  /// Whether a sample is due. The first call after stop() sets the time of the first sample.
  bool isDue(std::uint64_t now);
  /// Time until the next sample.
  std::uint64_t rest(std::uint64_t now) const { return next_ - now; }
  /// The time that a sample stands for.
  std::uint64_t covers(std::uint64_t now) const { return now - until_; }
  /// A sample was taken, with so many queries to the driver. More queries make the next one later.
  void taken(std::uint64_t now, std::size_t queries);
  /// No sample until the next call of isDue().
  void stop() { next_ = 0; }

 private:
  std::minstd_rand random_;
  std::uint64_t next_ = 0;   ///< 0: stopped
  std::uint64_t until_ = 0;  ///< start of the time that the next sample covers
};

}  // namespace worker
