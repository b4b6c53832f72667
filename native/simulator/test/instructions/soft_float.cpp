#include "native/simulator/test/instructions/soft_float.h"

#include <algorithm>

namespace instructions {
namespace {

constexpr int kTop = 126;  ///< position of a normalised mantissa's first bit

int topBit(u128 value) {
  int top = -1;
  for (int width = 64; width; width /= 2) {
    if (value >> width) {
      value >>= width;
      top += width;
    }
  }
  return value ? top + 1 : top;
}

u128 shiftedRight(u128 value, int amount) {
  if (amount <= 0) return value;
  if (amount > kTop + 1) return value != 0;
  const bool lost = value & ((static_cast<u128>(1) << amount) - 1);
  return value >> amount | static_cast<u128>(lost);
}

Real normalised(Real value) {
  if (value.kind != Real::Class::Finite) return value;
  if (value.mantissa == 0) return {Real::Class::Zero, value.negative, 0, 0};
  const int top = topBit(value.mantissa);
  if (top < kTop) {
    value.mantissa <<= kTop - top;
  } else {
    value.mantissa = shiftedRight(value.mantissa, top - kTop);
  }
  value.exponent += top - kTop;
  return value;
}

bool roundsUp(bool odd, u128 rest, u128 half, bool negative, Rounding rounding) {
  switch (rounding) {
    case Rounding::Zero: return false;
    case Rounding::Down: return negative && rest != 0;
    case Rounding::Up: return !negative && rest != 0;
    case Rounding::Away: return rest >= half;
    case Rounding::Nearest: break;
  }
  return rest > half || (rest == half && odd);
}

/// Cuts the lower `drop` bits off.
u128 roundedBits(u128 mantissa, int drop, bool negative, Rounding rounding) {
  if (drop <= 0) return mantissa << -drop;
  if (drop > kTop + 1) {
    mantissa = mantissa != 0;  // less than half of the last place
    drop = 2;
  }
  const u128 kept = mantissa >> drop, rest = mantissa & ((static_cast<u128>(1) << drop) - 1),
             half = static_cast<u128>(1) << (drop - 1);
  return kept + roundsUp(kept & 1, rest, half, negative, rounding);
}

u64 overflowed(bool negative, const Format& format, Rounding rounding) {
  const bool stays =
      rounding == Rounding::Zero || rounding == (negative ? Rounding::Up : Rounding::Down);
  return format.infinity() - stays;
}

}  // namespace

Rounding roundingNamed(std::string_view word) {
  if (word == "rz" || word == "rzi") return Rounding::Zero;
  if (word == "rm" || word == "rmi") return Rounding::Down;
  if (word == "rp" || word == "rpi") return Rounding::Up;
  return word == "rna" ? Rounding::Away : Rounding::Nearest;
}

Rounding roundingIn(const Words& words) {
  for (const char* word : {"rz", "rm", "rp", "rna", "rzi", "rmi", "rpi"}) {
    if (words.has(word)) return roundingNamed(word);
  }
  return Rounding::Nearest;
}

Format formatNamed(std::string_view word) {
  if (word == "f64") return kF64;
  if (word == "f16" || word == "f16x2") return kF16;
  if (word == "bf16" || word == "bf16x2") return kBF16;
  return word == "tf32" ? kTF32 : kF32;
}

Kind kindOf(const Format& format) {
  return format == kF64    ? Kind::F64
         : format == kF16  ? Kind::F16
         : format == kBF16 ? Kind::BF16
                           : Kind::F32;
}

Real quietNan() { return {Real::Class::Nan, false, 0, 0}; }

Real negated(Real value) {
  value.negative = !value.negative;
  return value;
}

Real decode(u64 bits, const Format& format) {
  const bool negative = bits & format.sign();
  const u64 magnitude = bits & (format.sign() - 1),
            fraction = magnitude & ((u64{1} << (format.precision - 1)) - 1);
  if (magnitude == 0) return {Real::Class::Zero, negative, 0, 0};
  if (magnitude == format.infinity()) return {Real::Class::Infinite, negative, 0, 0};
  if (magnitude > format.infinity()) return {Real::Class::Nan, negative, 0, 0};
  const auto field = static_cast<int>(magnitude >> (format.precision - 1));
  const u128 mantissa = field ? fraction | u64{1} << (format.precision - 1) : fraction;
  const int exponent =
      std::max(field, 1) - 1 + format.smallestExponent() - static_cast<int>(format.precision - 1);
  return normalised({Real::Class::Finite, negative, exponent, mantissa});
}

u64 encode(const Real& value, const Format& format, Rounding rounding) {
  const u64 sign = value.negative ? format.sign() : 0;
  if (value.isNan()) return format.nan;
  if (value.isZero()) return sign;
  if (value.isInfinite()) return sign | format.infinity();
  const Real v = normalised(value);
  const int top = v.exponent + kTop, below = std::max(format.smallestExponent() - top, 0);
  const u128 kept = roundedBits(v.mantissa, kTop + 1 - static_cast<int>(format.precision) + below,
                                v.negative, rounding);
  // A subnormal's exponent field is 0. The hidden bit adds 1 to the field of a normal number, as
  // does a carry.
  const int field = below ? 0 : top - format.smallestExponent();
  if (field >= 1 << format.exponentBits) return sign | overflowed(v.negative, format, rounding);
  const u128 magnitude = (static_cast<u128>(field) << (format.precision - 1)) + kept;
  return sign | (magnitude >= format.infinity() ? overflowed(v.negative, format, rounding)
                                                : static_cast<u64>(magnitude));
}

u64 encodeFlushed(const Real& value, const Format& format, Rounding rounding) {
  const Format unlimited{format.precision, 15, 0};
  const u64 result = encode(value, format, rounding);
  if (value.kind != Real::Class::Finite) return result;
  const Real rounded = decode(encode(value, unlimited, rounding), unlimited);
  const bool tiny = rounded.isZero() || rounded.exponent + kTop < format.smallestExponent();
  return tiny ? result & format.sign() : result;
}

Real realOf(i128 value) {
  const bool negative = value < 0;
  return normalised(
      {Real::Class::Finite, negative, 0, static_cast<u128>(negative ? -value : value)});
}

Real sum(const Real& a, const Real& b, Rounding rounding) {
  if (a.isNan() || b.isNan()) return quietNan();
  if (a.isInfinite() || b.isInfinite()) {
    if (a.isInfinite() && b.isInfinite() && a.negative != b.negative) return quietNan();
    return a.isInfinite() ? a : b;
  }
  const bool zeroSign = a.negative == b.negative ? a.negative : rounding == Rounding::Down;
  if (a.isZero() && b.isZero()) return {Real::Class::Zero, zeroSign, 0, 0};
  if (a.isZero() || b.isZero()) return a.isZero() ? b : a;
  Real x = normalised(a), y = normalised(b);
  if (x.exponent < y.exponent || (x.exponent == y.exponent && x.mantissa < y.mantissa))
    std::swap(x, y);
  const u128 other = shiftedRight(y.mantissa, x.exponent - y.exponent);
  if (x.negative != y.negative && x.mantissa == other) return {Real::Class::Zero, zeroSign, 0, 0};
  x.mantissa = x.negative == y.negative ? x.mantissa + other : x.mantissa - other;
  return normalised(x);
}

Real product(const Real& a, const Real& b) {
  const bool negative = a.negative != b.negative;
  if (a.isNan() || b.isNan() || (a.isZero() && b.isInfinite()) || (a.isInfinite() && b.isZero()))
    return quietNan();
  if (a.isInfinite() || b.isInfinite()) return {Real::Class::Infinite, negative, 0, 0};
  if (a.isZero() || b.isZero()) return {Real::Class::Zero, negative, 0, 0};
  // Operands have at most 53 significant bits, so their lower halves are zero.
  const u128 mantissa = (a.mantissa >> 63) * (b.mantissa >> 63);
  return normalised({Real::Class::Finite, negative, a.exponent + b.exponent + 126, mantissa});
}

Real quotient(const Real& a, const Real& b) {
  const bool negative = a.negative != b.negative;
  if (a.isNan() || b.isNan() || (a.isZero() && b.isZero()) || (a.isInfinite() && b.isInfinite()))
    return quietNan();
  if (a.isInfinite() || b.isZero()) return {Real::Class::Infinite, negative, 0, 0};
  if (a.isZero() || b.isInfinite()) return {Real::Class::Zero, negative, 0, 0};
  const u128 divisor = b.mantissa >> 63;
  const u128 ratio = a.mantissa / divisor, rest = a.mantissa % divisor;  // of 63 bits or more
  return normalised({Real::Class::Finite, negative, a.exponent - b.exponent - 64,
                     ratio << 1 | static_cast<u128>(rest != 0)});
}

Real squareRoot(const Real& a) {
  if (a.isNan() || (a.negative && !a.isZero())) return quietNan();
  if (a.kind != Real::Class::Finite) return a;
  const Real v = normalised(a);
  const bool odd = v.exponent & 1;
  const u128 square = odd ? v.mantissa << 1 : v.mantissa;
  u128 root = 0;
  for (u128 bit = static_cast<u128>(1) << 63; bit; bit >>= 1) {
    if ((root | bit) * (root | bit) <= square) root |= bit;
  }
  const u128 rest = square - root * root;
  return normalised({Real::Class::Finite, false, (v.exponent - odd) / 2 - 1,
                     root << 1 | static_cast<u128>(rest != 0)});
}

int order(const Real& a, const Real& b) {
  if (a.isNan() || b.isNan()) return 2;
  if (a.isInfinite() && b.isInfinite() && a.negative == b.negative) return 0;
  const Real difference = sum(a, negated(b), Rounding::Nearest);
  return difference.isZero() ? 0 : difference.negative ? -1 : 1;
}

Real toIntegral(const Real& value, Rounding rounding) {
  if (value.kind != Real::Class::Finite) return value;
  const Real v = normalised(value);
  if (v.exponent >= 0) return v;
  const u128 whole = roundedBits(v.mantissa, -v.exponent, v.negative, rounding);
  return normalised({Real::Class::Finite, v.negative, 0, whole});
}

i128 integerOf(const Real& value) {
  constexpr i128 kLimit = static_cast<i128>(1) << 100;
  if (value.isZero() || value.isNan()) return 0;
  const Real v = normalised(value);
  const bool large = value.isInfinite() || v.exponent + kTop >= 100;
  const i128 size = large ? kLimit : static_cast<i128>(shiftedRight(v.mantissa, -v.exponent));
  return value.negative ? -size : size;
}

bool isNan(u64 bits, const Format& format) {
  return (bits & (format.sign() - 1)) > format.infinity();
}
bool isSubnormal(u64 bits, const Format& format) {
  return (bits & format.infinity()) == 0 && (bits & (format.sign() - 1)) != 0;
}
u64 flushed(u64 bits, const Format& format) {
  return (bits & format.infinity()) == 0 ? bits & format.sign() : bits;
}

u64 saturated(u64 bits, const Format& format) {
  const Real value = decode(bits, format);
  if (value.isNan() || value.isZero() || value.negative) return 0;
  return order(value, decode(format.one(), format)) > 0 ? format.one() : bits;
}

Check anyNan(const Format& format) {
  return [format](const u64*, u64 wanted, u64 got) {
    return wanted == got || (isNan(wanted, format) && isNan(got, format));
  };
}

}  // namespace instructions
