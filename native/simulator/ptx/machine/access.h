// An access to memory as the checks see it.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

/// Kind and size of a checked operation, packed into Operation::detail.
struct Access {
  /// Bulk: a copy of as many bytes as slot 1 says, in units of `bytes`. A strong one is a
  /// reduction.
  enum class Kind : std::uint8_t { Load, Store, Atomic, Copy, Bulk };
  Kind kind = Kind::Load;
  Space space = Space::Generic;
  unsigned bytes = 4;
  bool strong = false;  ///< volatile, relaxed, acquire, release, atomic
  bool narrow = false;  ///< of scope cta: not strong between blocks
  bool release = false;

  std::uint32_t packed() const;
  static Access of(std::uint32_t packed);
};

inline std::uint32_t Access::packed() const {
  return bytes | static_cast<std::uint32_t>(space) << 8 | static_cast<std::uint32_t>(kind) << 16 |
         std::uint32_t{strong} << 20 | std::uint32_t{narrow} << 21 | std::uint32_t{release} << 22;
}

inline Access Access::of(std::uint32_t packed) {
  return {static_cast<Kind>((packed >> 16) & 15),
          static_cast<Space>((packed >> 8) & 255),
          packed & 255,
          (packed >> 20 & 1) != 0,
          (packed >> 21 & 1) != 0,
          (packed >> 22 & 1) != 0};
}

}  // namespace simulator::ptx
