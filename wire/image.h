// Facts about code images, for both ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

/// Magic of __fatBinC_Wrapper_t, which nvcc writes to .nvFatBinSegment.
inline constexpr std::uint32_t kWrapperMagic = 0x466243b1;
/// Magic of a fat binary.
inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

/// Maximum bytes of an image inside a frame. A memory file costs more than the driver's own work on
/// a small image: three system calls each, and a wake-up of the thread that receives it.
inline constexpr std::size_t kInlineImageBytes = std::size_t{64} << 10;

/// Zero bytes behind an image that the driver sees, so that a parser that searches for an end finds
/// it there. An image inside a frame comes with them, so that machine code need not be copied.
inline constexpr std::size_t kImageZeros = 64;

}  // namespace wire
