// Magic numbers of code images, for both ends.
#pragma once

#include <cstdint>

namespace wire {

/// Magic of __fatBinC_Wrapper_t, which nvcc writes to .nvFatBinSegment.
inline constexpr std::uint32_t kWrapperMagic = 0x466243b1;
/// Magic of a fat binary.
inline constexpr std::uint32_t kFatbinMagic = 0xba55ed50;

}  // namespace wire
