// Floating-point formats narrower than float: f16, bf16, tf32.
#pragma once

#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {

/// Rounds to a format of `precision` bits (the hidden one included) whose smallest normal exponent
/// is `minimum`; answers its bits. NaN becomes the format's canonical one: all bits but the sign.
template <int precision, int minimum, int exponentBits>
[[gnu::always_inline]] inline u32 rounded(double value, Rounding rounding) {
  constexpr u32 kInfinity = ((1u << exponentBits) - 1) << (precision - 1);
  constexpr int kSignPosition = exponentBits + precision - 1;
  const u64 bits = bitsAs<u64>(value);
  const bool negative = bits >> 63;
  const u32 sign = u32(negative) << kSignPosition;
  int exponent = int((bits >> 52) & 2047);
  u64 mantissa = bits & ((1ull << 52) - 1);
  if (exponent == 2047) return mantissa ? (1u << kSignPosition) - 1 : sign | kInfinity;
  if (exponent) mantissa |= 1ull << 52;
  if (mantissa == 0) return sign;
  exponent = (exponent ? exponent : 1) - 1023;
  int shift = 53 - precision;
  if (exponent < minimum) shift = shift + minimum - exponent < 62 ? shift + minimum - exponent : 62;
  u64 kept = mantissa >> shift;
  const u64 rest = mantissa & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  bool up = false;
  switch (rounding) {
    case Rounding::Zero: break;
    case Rounding::Down: up = negative && rest; break;
    case Rounding::Up: up = !negative && rest; break;
    case Rounding::NearestAway: up = rest >= half; break;
    default: up = rest > half || (rest == half && (kept & 1)); break;
  }
  kept += up;
  u32 result = u32(kept);
  if (exponent >= minimum) {
    if (exponent > 1023 - 1 || exponent - minimum + 1 >= (1 << exponentBits))
      result = kInfinity;
    else
      result = u32(
          ((u64(exponent - minimum + 1) << (precision - 1)) + kept - (1ull << (precision - 1))));
  }
  if (result >= kInfinity) {
    const bool stays = rounding == Rounding::Zero || (rounding == Rounding::Down && !negative) ||
                       (rounding == Rounding::Up && negative);
    result = stays ? kInfinity - 1 : kInfinity;
  }
  return sign | result;
}

// kNormal: the smallest magnitude that rounds to a normal number if the exponent has no limit.

struct Half {
  static constexpr double kNormal = 0x1.ffep-15;
  static constexpr u16 kOne = 0x3c00, kNan = 0x7fff, kInfinity = 0x7c00;
  [[gnu::always_inline]] static float widen(u16 h) {
    const u32 magnitude = u32(h & 0x7fff) << 13;
    const float scaled = bitsAs<float>(magnitude) * 0x1p112f;
    const u32 bits = (h & 0x7c00) == 0x7c00 ? magnitude | 0x7f800000u : bitsAs<u32>(scaled);
    return bitsAs<float>(bits | u32(h & 0x8000) << 16);
  }
  static u16 narrow(double value, Rounding rounding = Rounding::Nearest) {
    return u16(rounded<11, -14, 5>(value, rounding));
  }
};

struct Brain {
  static constexpr double kNormal = 0x1.ffp-127;
  static constexpr u16 kOne = 0x3f80, kNan = 0x7fff, kInfinity = 0x7f80;
  static float widen(u16 h) { return bitsAs<float>(u32(h) << 16); }
  static u16 narrow(double value, Rounding rounding = Rounding::Nearest) {
    return u16(rounded<8, -126, 8>(value, rounding));
  }
};

/// Formats of 8 bits. What is too large becomes the largest number.
struct E4M3 {
  static constexpr u8 kNan = 0x7f, kLargest = 0x7e;
  static double widen(u8 v) {
    const int size = v & 0x7f, mantissa = size & 7, exponent = size >> 3;
    if (size == kNan) return __builtin_nan("");
    const double value = exponent ? (8 + mantissa) * bitsAs<double>(u64(1023 - 10 + exponent) << 52)
                                  : mantissa * 0x1p-9;
    return v & 0x80 ? -value : value;
  }
  static u8 narrow(double value) {
    if (value != value) return kNan;
    const u32 bits = rounded<4, -6, 5>(value, Rounding::Nearest), size = bits & 0xff;
    return u8((bits >> 1 & 0x80) | (size < kLargest ? size : kLargest));
  }
};
struct E5M2 {
  static constexpr u8 kLargest = 0x7b;
  static double widen(u8 v) { return Half::widen(u16(v << 8)); }
  static u8 narrow(double value) {
    const u32 bits = rounded<3, -14, 5>(value, Rounding::Nearest);
    return (bits & 0x7f) == 0x7c ? u8((bits & 0x80) | kLargest) : u8(bits);
  }
};

inline u32 roundedToTf32(double value, Rounding rounding) {
  return rounded<11, -126, 8>(value, rounding) << 13;
}

inline float flushed(float value) {
  return (bitsAs<u32>(value) & 0x7f800000u) == 0 ? bitsAs<float>(bitsAs<u32>(value) & 0x80000000u)
                                                 : value;
}
inline u16 flushedHalf(u16 value) { return (value & 0x7c00) == 0 ? value & 0x8000 : value; }
/// f16 whose subnormal operands count as zero.
struct FlushedHalf {
  static float widen(u16 h) { return Half::widen(flushedHalf(h)); }
};

inline float canonical(float value) { return value != value ? bitsAs<float>(0x7fffffffu) : value; }
inline double canonical(double value) { return value; }

}  // namespace simulator::ptx::SIMULATOR_LANES
