// Integer types of PTX as the references use them: exact numbers of 128 bits, cut at the end.
#pragma once

#include "native/simulator/test/instructions/form.h"

namespace instructions {

struct Integer {
  unsigned bits = 0;
  bool negative = false;  ///< has a sign
};

/// "s32", "u8", "b64"; zero bits for any other word.
inline Integer integerType(std::string_view word) {
  if (word.size() < 2 || (word[0] != 's' && word[0] != 'u' && word[0] != 'b')) return {};
  const std::string_view digits = word.substr(1);
  const unsigned bits = digits == "8"    ? 8
                        : digits == "16" ? 16
                        : digits == "32" ? 32
                        : digits == "64" ? 64
                                         : 0;
  return {bits, word[0] == 's'};
}

inline Kind kindOf(Integer type) {
  return type.bits == 64 ? Kind::Int64 : type.bits == 32 ? Kind::Int32 : Kind::Int16;
}

inline u64 cut(u128 value, unsigned bits) {
  return static_cast<u64>(value) & (bits >= 64 ? ~u64{0} : (u64{1} << bits) - 1);
}

/// The number that the lower bits of a register spell.
inline i128 numberIn(u64 raw, Integer type) {
  const auto low = static_cast<i128>(cut(raw, type.bits));
  const i128 weight = static_cast<i128>(1) << type.bits;
  return type.negative && low >= weight / 2 ? low - weight : low;
}

inline i128 smallest(Integer type) {
  return type.negative ? -(static_cast<i128>(1) << (type.bits - 1)) : 0;
}
inline i128 largest(Integer type) {
  return (static_cast<i128>(1) << (type.negative ? type.bits - 1 : type.bits)) - 1;
}
inline i128 clampTo(i128 value, Integer type) {
  return value < smallest(type) ? smallest(type) : value > largest(type) ? largest(type) : value;
}

}  // namespace instructions
