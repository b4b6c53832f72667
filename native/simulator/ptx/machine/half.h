// Floating-point numbers of 16 bits in images.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace simulator::ptx {

inline float halfToFloat(std::uint16_t half) {
  const std::uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000u | magnitude << 13);
  const float value = std::ldexp(std::bit_cast<float>(magnitude << 13), 112);
  return sign != 0 ? -value : value;
}

/// Rounds to the nearest, to even ones between two.
inline std::uint16_t floatToHalf(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7fff;
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x38800000u)
    return static_cast<std::uint16_t>(sign | std::lrint(std::ldexp(std::fabs(value), 24)));
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1);
  return static_cast<std::uint16_t>(sign | (rounded - (112u << 23)) >> 13);
}

}  // namespace simulator::ptx
