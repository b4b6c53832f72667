// Past durations of work by its shape: the estimate for work that was submitted and has not ended.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>

namespace worker {

/// Key of a kind of work: a hash of its function, grid and sizes.
inline std::uint64_t shapeOf(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t shape = 0x9e3779b97f4a7c15;
  for (const std::uint64_t part : parts) {
    shape = (shape ^ part) * 0xff51afd7ed558ccd;
    shape ^= shape >> 32;
  }
  return shape;
}

/// Not thread-safe. A place is given to another shape only when more shapes meet there than it has
/// ways: ResNet-50 has some 350, of which 20 forgot each other at each step when there was one.
class Durations {
 public:
  using Index = std::uint16_t;
  static constexpr std::uint32_t kUnknown = 0;

  /// Entry of the shape's duration; unknown if it has not been seen lately.
  Index find(std::uint64_t shape) {
    const std::size_t set = shape % kSets;
    const auto tag = static_cast<std::uint32_t>(shape >> 32);
    for (std::size_t index = set * kWays; index < (set + 1) * kWays; ++index) {
      if (places_[index].tag == tag) return static_cast<Index>(index);
    }
    const std::size_t oldest = set * kWays + next_[set]++ % kWays;
    places_[oldest] = {tag, kUnknown};
    return static_cast<Index>(oldest);
  }
  /// Nanoseconds, or kUnknown.
  std::uint32_t at(Index index) const { return places_[index].nanoseconds; }

  /// It took so long, alone.
  void set(Index index, double nanoseconds) { places_[index].nanoseconds = clamped(nanoseconds); }
  /// It was part of work that took `ratio` times what is guessed of all of it. Nears that slowly:
  /// other parts may be to blame, or the check was late. To be called once for such work,
  /// however often it is part of it.
  void correct(Index index, double ratio) {
    set(index, at(index) * (1 + kStep * (std::clamp(ratio, 0.25, 4.0) - 1)));
  }

 private:
  static constexpr std::size_t kSets = 2048, kWays = 4;
  static constexpr double kStep = 0.25;
  static constexpr double kShortest = 1'000, kLongest = 4e9;  // nanoseconds
  static std::uint32_t clamped(double nanoseconds) {
    return static_cast<std::uint32_t>(std::clamp(nanoseconds, kShortest, kLongest));
  }
  struct Place {
    std::uint32_t tag = 0;
    std::uint32_t nanoseconds = kUnknown;
  };
  std::array<Place, kSets * kWays> places_{};
  std::array<std::uint8_t, kSets>
      next_{};  ///< the way of each set that is given away next: the oldest
};

}  // namespace worker
