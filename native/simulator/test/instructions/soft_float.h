// Floating-point arithmetic by integers, so that the reference does not depend on the host's or the
// simulator's: values are exact until encode() rounds them once.
#pragma once

#include <string_view>

#include "native/simulator/test/instructions/form.h"

namespace instructions {

enum class Rounding : std::uint8_t { Nearest, Zero, Down, Up, Away };

/// "rn", "rz", "rm", "rp", "rna"; Nearest for any other word.
Rounding roundingNamed(std::string_view word);
/// That of the words, Nearest if they name none.
Rounding roundingIn(const Words& words);

struct Format {
  unsigned precision;  ///< significant bits, the hidden one included
  unsigned exponentBits;
  u64 nan;  ///< what operations answer
  unsigned bits() const { return precision + exponentBits; }
  int smallestExponent() const { return 2 - (1 << (exponentBits - 1)); }
  u64 sign() const { return u64{1} << (bits() - 1); }
  u64 infinity() const { return ((u64{1} << exponentBits) - 1) << (precision - 1); }
  u64 one() const { return ((u64{1} << (exponentBits - 1)) - 1) << (precision - 1); }
  bool operator==(const Format&) const = default;
};

inline constexpr Format kF64{53, 11, 0x7ff8000000000000}, kF32{24, 8, 0x7fffffff},
    kF16{11, 5, 0x7fff}, kBF16{8, 8, 0x7fff}, kTF32{11, 8, 0x3ffff};

/// "f32", "bf16", "f16x2" and so on.
Format formatNamed(std::string_view word);
Kind kindOf(const Format& format);

/// mantissa * 2^exponent. Bits that were shifted out are kept as a one in the lowest bit, which is
/// far below any rounding.
struct Real {
  enum class Class : std::uint8_t { Zero, Finite, Infinite, Nan };
  Class kind = Class::Zero;
  bool negative = false;
  int exponent = 0;
  u128 mantissa = 0;
  bool isNan() const { return kind == Class::Nan; }
  bool isZero() const { return kind == Class::Zero; }
  bool isInfinite() const { return kind == Class::Infinite; }
};

Real decode(u64 bits, const Format& format);
u64 encode(const Real& value, const Format& format, Rounding rounding);
/// .ftz: a result that is below the smallest normal number, rounded as if exponents had no limit,
/// becomes zero.
u64 encodeFlushed(const Real& value, const Format& format, Rounding rounding);
Real realOf(i128 value);
Real quietNan();
Real negated(Real value);

/// A sum that is exactly zero has the sign that `rounding` asks for.
Real sum(const Real& a, const Real& b, Rounding rounding);
Real product(const Real& a, const Real& b);
Real quotient(const Real& a, const Real& b);
Real squareRoot(const Real& a);

/// -1, 0, 1; 2 if one of them is NaN. Both zeros are equal.
int order(const Real& a, const Real& b);

/// Rounds to an integer. `infinite` and NaN stay.
Real toIntegral(const Real& value, Rounding rounding);
/// An integral value, clamped to 100 bits.
i128 integerOf(const Real& value);

bool isNan(u64 bits, const Format& format);
bool isSubnormal(u64 bits, const Format& format);
/// Subnormal numbers become zero of the same sign.
u64 flushed(u64 bits, const Format& format);
/// .sat: what is not in [0, 1] becomes its nearer end, NaN and -0 become 0.
u64 saturated(u64 bits, const Format& format);

/// Right if `got` is the same number or both are NaN.
Check anyNan(const Format& format);

}  // namespace instructions
