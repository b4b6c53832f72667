// What the forms that access memory share. Each thread works on memory of its own; how threads see
// each other's accesses is the subject of other tests.
#pragma once

#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {

/// 32 bytes of each thread. `address` is the operand without brackets; `setup` computes it.
struct Place {
  const char* space;  ///< word of ld and st, with its dot; empty: generic
  const char* setup;
};

inline constexpr const char* kGlobal = "mov.b64 %a, %to;";
inline constexpr const char* kShared =
    "mov.u32 %t0, %tid.x; mul.lo.u32 %t0, %t0, 32; mov.u32 %a32, scratch; add.u32 %a32, %a32, %t0; "
    "cvt.u64.u32 %a, %a32;";
inline constexpr const char* kLocal = "mov.u64 %a, mine;";

inline constexpr const char* kTypes[] = {"b8",  "b16", "b32", "b64", "u8",  "u16", "u32",
                                         "u64", "s8",  "s16", "s32", "s64", "f32", "f64"};

inline unsigned bitsOf(const std::string& type) {
  return integerType(type).bits ? integerType(type).bits : formatNamed(type).bits();
}

}  // namespace instructions
