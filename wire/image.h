// How a code image is laid out in the memory of a program, as far as both ends need it.
#pragma once

#include <cstdint>

namespace wire {

/// What an image pointer points to.
enum class ImageKind : std::uint32_t { none, wrapper, fatbin, elf, text };

/// Of __fatBinC_Wrapper_t, which nvcc puts into .nvFatBinSegment.
inline constexpr std::uint32_t kWrapperMagic = 0x466243b1;
/// Of a fat binary.
inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

}  // namespace wire
