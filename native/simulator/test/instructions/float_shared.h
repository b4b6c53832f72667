// What the references of float and half forms share.
#pragma once

#include "native/simulator/test/instructions/integers.h"
#include "native/simulator/test/instructions/soft_float.h"

namespace instructions {

inline u64 low(u64 bits, const Format& format) { return cut(bits, format.bits()); }

/// min and max with .ftz, .NaN and .xorsign.abs.
u64 extreme(const Words& words, u64 a, u64 b, const Format& format);
/// neg and abs with .ftz.
u64 signChanged(const Words& words, u64 a, const Format& format);

}  // namespace instructions
