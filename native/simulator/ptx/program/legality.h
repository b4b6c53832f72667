// Which types and modifiers PTX lets an instruction have. A decoder asks, so that a spelling which
// an assembler refuses is refused here too, instead of being computed as something else.
#pragma once

#include <initializer_list>

#include "native/simulator/ptx/lanes/form.h"

namespace simulator::ptx {

constexpr bool isOneOf(Type type, std::initializer_list<Type> types) {
  for (const Type each : types) {
    if (each == type) return true;
  }
  return false;
}

/// .b16, .b32, .b64.
constexpr bool isBits(Type type) { return isOneOf(type, {Type::B16, Type::B32, Type::B64}); }
constexpr bool isUnsigned(Type type) { return isOneOf(type, {Type::U16, Type::U32, Type::U64}); }
/// The integers of 16 to 64 bits that arithmetic knows.
constexpr bool isWhole(Type type) {
  return isUnsigned(type) || isOneOf(type, {Type::S16, Type::S32, Type::S64});
}
constexpr bool isWord(Type type) { return type == Type::U32 || type == Type::S32; }
constexpr bool isWide(Type type) { return type == Type::F32 || type == Type::F64; }
constexpr bool isHalf(Type type) { return type == Type::F16 || type == Type::F16x2; }
constexpr bool isBrain(Type type) { return type == Type::BF16 || type == Type::BF16x2; }
/// Types that mov, selp and slct move.
constexpr bool isPlain(Type type) { return isBits(type) || isWhole(type) || isWide(type); }

constexpr bool isDirection(Rounding rounding) {
  return rounding >= Rounding::Nearest && rounding <= Rounding::Up;
}
constexpr bool isIntegral(Rounding rounding) { return rounding >= Rounding::IntegerNearest; }

bool legalConversion(const Form& form);
bool legalComparison(Compare compare, bool unsignedWord, Type type, bool flush);
bool legalSet(const Form& form);
/// `unflushed` says that .noftz is there.
bool legalAtomic(const Form& form, bool unflushed);
bool legalAtomicVector(const Form& form, unsigned count);
/// The space is that of the destination.
bool legalBulkReduction(const Form& form, bool unflushed);

}  // namespace simulator::ptx
