// Approximations. The reference is the C library's function of long double; the bound is what the
// PTX manual promises.
#include <algorithm>
#include <cmath>
#include <limits>

#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

using Exact = long double;

/// How far a result may be from the exact one.
struct Bound {
  Exact relative = 0, absolute = 0,
        places = 0;  ///< `places` counts units in the last place of the exact result
};

Exact valueOf(u64 bits, const Format& format) {
  const Real v = decode(low(bits, format), format);
  if (v.isNan()) return std::numeric_limits<Exact>::quiet_NaN();
  Exact size = v.isZero()       ? 0.0L
               : v.isInfinite() ? std::numeric_limits<Exact>::infinity()
                                : static_cast<Exact>(v.mantissa);
  if (v.kind == Real::Class::Finite) size = std::ldexp(size, v.exponent);
  return v.negative ? -size : size;
}

u64 bitsOf(Exact value, const Format& format) {
  if (std::isnan(value)) return format.nan;
  const bool negative = std::signbit(value);
  if (std::isinf(value)) return (negative ? format.sign() : 0) | format.infinity();
  if (value == 0) return negative ? format.sign() : 0;
  int exponent = 0;
  const Exact fraction = std::frexp(std::fabs(value), &exponent);
  const auto mantissa = static_cast<u64>(std::ldexp(fraction, 64));
  return encode({Real::Class::Finite, negative, exponent - 64, mantissa}, format,
                Rounding::Nearest);
}

Exact lastPlace(Exact value, const Format& format) {
  const int least = format.smallestExponent() - static_cast<int>(format.precision) + 1;
  if (value == 0) return std::ldexp(1.0L, least);
  return std::ldexp(1.0L,
                    std::max(std::ilogb(value) - static_cast<int>(format.precision) + 1, least));
}

bool within(Exact exact, u64 got, const Format& format, const Bound& bound, bool flush) {
  const Exact value = valueOf(got, format);
  if (std::isnan(exact) || std::isnan(value)) return std::isnan(exact) && std::isnan(value);
  const Exact limit = valueOf(format.infinity() - 1, format),
              tiny = std::ldexp(1.0L, format.smallestExponent());
  const Exact margin =
      bound.relative * std::fabs(exact) + bound.absolute + bound.places * lastPlace(exact, format);
  if (std::isinf(bound.absolute)) return !std::isinf(value);
  if (std::isinf(exact)) return value == exact;
  if (std::isinf(value))
    return std::fabs(exact) + margin > limit && std::signbit(exact) == std::signbit(value);
  if (exact == 0)
    return value == 0 ? std::signbit(exact) == std::signbit(value)
                      : std::fabs(value) <= bound.absolute;
  if (flush && value == 0)
    return std::fabs(exact) - margin < tiny &&
           (std::signbit(exact) == std::signbit(value) || std::fabs(exact) <= margin);
  if (flush && std::fabs(value) < tiny) return false;
  // A result is a number of its format, so half of a place comes on top for the exact one not being
  // so.
  return std::fabs(value - exact) <= margin + lastPlace(exact, format) / 2;
}

using Function = Exact (*)(const Exact* v);

void add(Forms& forms, std::string_view pattern, unsigned sources, Function function,
         Bound (*bound)(const Exact* v)) {
  for (const std::string& name : expand(pattern)) {
    const Words words(name);
    const std::string type = words.last();
    const Format format = formatNamed(type);
    const bool pair = type.ends_with("x2"), flush = words.has("ftz");
    const Kind kind = pair ? (format == kF16 ? Kind::F16x2 : Kind::BF16x2) : kindOf(format);
    const bool upper = format == kF64 && flush;  // only the upper half of the operand counts
    const auto exact = [=](const u64* s, unsigned half, Exact* v) {
      for (unsigned i = 0; i < sources; ++i) {
        const u64 bits = upper ? s[i] >> 32 << 32 : low(pair ? s[i] >> (16 * half) : s[i], format);
        v[i] = valueOf(flush ? flushed(bits, format) : bits, format);
      }
      return function(v);
    };
    const unsigned halves = pair ? 2 : 1;
    const auto reference = [=](const u64* s, u64* d) {
      Exact v[2];
      d[0] = 0;
      for (unsigned half = 0; half < halves; ++half)
        d[0] |= bitsOf(exact(s, half, v), format) << (16 * half);
    };
    const Check check = [=](const u64* s, u64, u64 got) {
      bool right = true;
      for (unsigned half = 0; half < halves; ++half) {
        Exact v[2];
        const Exact wanted = exact(s, half, v);
        right &= within(wanted, low(got >> (16 * half), format), format, bound(v), flush);
      }
      return right;
    };
    forms.push_back({name, {kind}, std::vector<Kind>(sources, kind), {}, reference, check, {}});
  }
}

/// Beyond 50 turns the manual promises nothing: the result only has to be finite. The H200 gives 0
/// for 0x7f7fffff.
Bound ofSine(const Exact* v) {
  const Exact size = std::fabs(v[0]), turn = 2 * std::acos(-1.0L);
  return {0,
          size <= turn        ? std::ldexp(1.0L, -20) * 0.7072L
          : size <= 50 * turn ? std::ldexp(1.0L, -14) * 0.616L
                              : std::numeric_limits<Exact>::infinity(),
          0};
}

Exact approximateQuotient(const Exact* v) {
  // 2^126 < |b| < 2^128: the reciprocal that the machine multiplies by is zero.
  const bool large = std::fabs(v[1]) > 0x1p126L && !std::isinf(v[1]);
  if (!large || std::isnan(v[0])) return v[0] / v[1];
  return v[0] * (std::signbit(v[1]) ? -0.0L : 0.0L);
}

}  // namespace

void approximateForms(Forms& forms) {
  add(forms, "div.approx(|.ftz).f32", 2, approximateQuotient, [](const Exact*) {
    return Bound{0, 0, 2};
  });
  add(
      forms, "div.full(|.ftz).f32", 2, [](const Exact* v) { return v[0] / v[1]; },
      [](const Exact*) {
        return Bound{0, 0, 2};
      });
  add(
      forms, "rcp.approx(|.ftz).f32", 1, [](const Exact* v) { return 1 / v[0]; },
      [](const Exact*) {
        return Bound{0, 0, 1};
      });
  const auto root = [](const Exact* v) { return std::sqrt(v[0]); };
  const auto reciprocalRoot = [](const Exact* v) { return 1 / std::sqrt(v[0]); };
  add(forms, "sqrt.approx(|.ftz).f32", 1, root, [](const Exact*) { return Bound{0x1p-23L, 0, 0}; });
  add(forms, "rsqrt.approx(|.ftz).f32", 1, reciprocalRoot, [](const Exact*) {
    return Bound{0x1p-22L * 0.54L, 0, 0};
  });
  add(forms, "rsqrt.approx.f64", 1, reciprocalRoot, [](const Exact*) { return Bound{0, 0, 2}; });
  const auto rough = [](const Exact*) {
    return Bound{0x1p-19L, 0, 0};
  };  // the upper half of operand and result counts
  add(forms, "rsqrt.approx.ftz.f64", 1, reciprocalRoot, rough);
  add(
      forms, "rcp.approx.ftz.f64", 1, [](const Exact* v) { return 1 / v[0]; }, rough);
  add(
      forms, "sin.approx(|.ftz).f32", 1, [](const Exact* v) { return std::sin(v[0]); }, ofSine);
  add(
      forms, "cos.approx(|.ftz).f32", 1, [](const Exact* v) { return std::cos(v[0]); }, ofSine);
  const auto logarithm = [](const Exact* v) { return std::log2(v[0]); };
  add(forms, "lg2.approx(|.ftz).f32", 1, logarithm, [](const Exact* v) {
    return v[0] > 0.5L && v[0] < 2 ? Bound{0, 0x1p-22L, 0} : Bound{0x1p-22L, 0, 0};
  });
  const auto power = [](const Exact* v) { return std::exp2(v[0]); };
  add(forms, "ex2.approx(|.ftz).f32", 1, power, [](const Exact*) { return Bound{0x1p-22L, 0, 0}; });
  // The H200 truncates subnormal results, which costs half of a place more than rounding.
  add(forms, "ex2.approx.(f16|f16x2)", 1, power, [](const Exact* v) {
    return Bound{0x1p-9L * 0.536L, v[0] < -14 ? 0x1p-25L : 0, 0};
  });
  add(forms, "ex2.approx.ftz.(bf16|bf16x2)", 1, power, [](const Exact*) {
    return Bound{0x1p-7L, 0, 0};
  });
  const auto tangent = [](const Exact* v) { return std::tanh(v[0]); };
  add(forms, "tanh.approx.f32", 1, tangent, [](const Exact*) { return Bound{0x1p-11L, 0, 0}; });
  add(forms, "tanh.approx.(f16|f16x2)", 1, tangent, [](const Exact*) {
    return Bound{0, 0x1p-10L * 0.505L, 0};
  });
  add(forms, "tanh.approx.(bf16|bf16x2)", 1, tangent, [](const Exact*) {
    return Bound{0, 0x1p-8L, 0};
  });
}

}  // namespace instructions
