// cvt: every legal pair of types, with rounding, .ftz, .sat, .relu and .satfinite.
#include <cmath>

#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

/// A type of cvt: one of the two is set.
struct Number {
  explicit Number(const std::string& name)
      : integer(integerType(name)), format(formatNamed(name)), isInteger(integer.bits != 0) {}
  Integer integer;
  Format format;
  bool isInteger;
  bool isSingle() const { return !isInteger && format == kF32; }
  bool isDouble() const { return !isInteger && format == kF64; }
};

u64 maskedToWidth(i128 value, unsigned bits) { return cut(static_cast<u128>(value), bits); }

/// PTX: zero where neither side has 64 bits, otherwise only the highest bit of the result is set.
i128 integerOfNan(const Number& to, const Number& from) {
  return from.isDouble() || to.integer.bits == 64 ? static_cast<i128>(1) << (to.integer.bits - 1)
                                                  : 0;
}

i128 toInteger(const Words& words, const Number& to, const Number& from, u64 source) {
  if (from.isInteger) {
    const i128 value = numberIn(source, from.integer);
    return words.has("sat") ? clampTo(value, to.integer) : value;
  }
  const u64 bits = low(source, from.format);
  const Real value =
      decode(words.has("ftz") && from.isSingle() ? flushed(bits, from.format) : bits, from.format);
  if (value.isNan()) return integerOfNan(to, from);
  return clampTo(integerOf(toIntegral(value, roundingIn(words))), to.integer);
}

u64 toFormat(const Words& words, const Number& to, const Number& from, u64 source) {
  Real value;
  const bool flush = words.has("ftz");
  if (from.isInteger) {
    value = realOf(numberIn(source, from.integer));
  } else {
    const u64 bits = low(source, from.format);
    const bool flushesSource =
        flush && from.isSingle() && to.format != kF16;  // H200, driver 580.159, 2026-11-23
    value = decode(flushesSource ? flushed(bits, from.format) : bits, from.format);
    // .rna of tf32 rounds a NaN's bits like those of a number: a small payload is lost (H200,
    // driver 580.159, 2026-11-23).
    if (words.has("rna") && value.isNan() &&
        (bits & (from.format.sign() - 1)) < from.format.infinity() + 0x1000) {
      value.kind = Real::Class::Infinite;
    }
    if (words[1].size() == 3 && words[1].ends_with('i'))
      value = toIntegral(value, roundingIn(words));
  }
  if (words.has("relu") && !value.isNan() && value.negative) value = {};
  u64 result = encode(value, to.format, roundingIn(words));
  if (words.has("satfinite") && (result & (to.format.sign() - 1)) == to.format.infinity()) --result;
  if (flush && to.isSingle()) result = flushed(result, to.format);
  return words.has("sat") ? saturated(result, to.format) : result;
}

/// Widths of the registers that may hold a type: its own, and one that is wider. Beside bf16 a
/// register is never wider.
std::vector<Kind> registersOf(const Number& number, bool widens, bool exact) {
  if (!number.isInteger) return {number.format == kTF32 ? Kind::Int32 : kindOf(number.format)};
  if (exact) return {kindOf(number.integer)};
  if (number.integer.bits == 64) return {Kind::Int64};
  if (number.integer.bits == 32)
    return widens ? std::vector<Kind>{Kind::Int32, Kind::Int64} : std::vector<Kind>{Kind::Int32};
  return {Kind::Int16, Kind::Int32};
}

std::string widthRemark(const Number& to, const Number& from, Kind toRegister, Kind fromRegister) {
  std::string remark;
  if (to.isInteger) remark += "to " + std::to_string(registerBits(toRegister)) + " bits";
  if (from.isInteger)
    remark += (remark.empty() ? "from " : ", from ") + std::to_string(registerBits(fromRegister)) +
              " bits";
  return remark;
}

void add(Forms& forms, const std::string& name) {
  const Words words(name);
  const Number to(words.last(1)), from(words.last());
  const bool both = to.isInteger && from.isInteger, exact = words.has("bf16");
  for (const Kind toRegister : registersOf(to, both, exact)) {
    for (const Kind fromRegister : registersOf(from, both, exact)) {
      const unsigned bits = registerBits(toRegister);
      const auto reference = [=](const u64* s, u64* d) {
        if (!to.isInteger) {
          d[0] = toFormat(words, to, from, s[0]) << (to.format == kTF32 ? 13 : 0);
        } else {
          const u64 narrow = maskedToWidth(toInteger(words, to, from, s[0]), to.integer.bits);
          d[0] = maskedToWidth(numberIn(narrow, to.integer),
                               bits);  // the rest of the register follows the type's sign
        }
      };
      const Check check = to.isInteger ? Check{} : anyNan(to.format == kTF32 ? kF32 : to.format);
      forms.push_back({name,
                       {toRegister},
                       {fromRegister},
                       {},
                       reference,
                       check,
                       widthRemark(to, from, toRegister, fromRegister)});
    }
  }
}

constexpr const char* kIntegers = "(u8|u16|u32|u64|s8|s16|s32|s64)";

/// .sat is legal where a value of `from` may lie outside of `to`.
bool maySaturate(const Integer& to, const Integer& from) {
  return smallest(from) < smallest(to) || largest(from) > largest(to);
}

void integers(Forms& forms) {
  for (const std::string& name : expand(std::string("cvt(|.sat).") + kIntegers + "." + kIntegers)) {
    const Words words(name);
    if (!words.has("sat") || maySaturate(integerType(words.last(1)), integerType(words.last())))
      add(forms, name);
  }
}

void all(Forms& forms, const std::string& pattern) {
  for (const std::string& name : expand(pattern)) add(forms, name);
}

void pairs(Forms& forms) {
  for (const char* pattern : {"cvt(.rn|.rz)(|.relu)(|.satfinite).(f16x2|bf16x2).f32"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Number to(words.last(1)), from("f32");
      const auto reference = [=](const u64* s, u64* d) {
        d[0] = toFormat(words, to, from, s[0]) << 16 | toFormat(words, to, from, s[1]);
      };
      const Check check = [=](const u64* s, u64 wanted, u64 got) {
        const Check one = anyNan(to.format);
        return one(s, cut(wanted, 16), cut(got, 16)) &&
               one(s, cut(wanted >> 16, 16), cut(got >> 16, 16));
      };
      forms.push_back({name,
                       {to.format == kF16 ? Kind::F16x2 : Kind::BF16x2},
                       {Kind::F32, Kind::F32},
                       {},
                       reference,
                       check,
                       {}});
    }
  }
}

/// A format of 8 bits: e4m3, whose largest exponent has numbers, or e5m2.
struct Small {
  explicit Small(const std::string& name) : fraction(name.starts_with("e4m3") ? 3 : 2) {}
  unsigned fraction;
  unsigned largest() const { return fraction == 3 ? 0x7e : 0x7b; }
  unsigned infinity() const { return fraction == 3 ? 0x80 : 0x7c; }
  int bias() const { return fraction == 3 ? 7 : 15; }
  /// Of a number without sign.
  double value(unsigned code) const {
    const unsigned mantissa = code & ((1u << fraction) - 1), exponent = code >> fraction;
    const unsigned hidden = exponent ? 1u << fraction : 0;
    return std::ldexp(hidden + mantissa, static_cast<int>(exponent ? exponent : 1) - bias() -
                                             static_cast<int>(fraction));
  }
  /// The nearest of all numbers; of two, the even one.
  unsigned nearest(double size) const {
    unsigned best = 0;
    for (unsigned code = 1; code <= largest(); ++code) {
      const double nearer = std::fabs(value(code) - size) - std::fabs(value(best) - size);
      if (nearer < 0 || (nearer == 0 && code % 2 == 0)) best = code;
    }
    return best;
  }
  unsigned narrow(double v, bool relu) const {
    if (std::isnan(v)) return 0x7f;
    if (relu && !(v > 0)) return 0;
    const double size = std::fabs(v);
    return (std::signbit(v) ? 0x80 : 0) | (size >= value(largest()) ? largest() : nearest(size));
  }
};

double doubleOf(u64 bits, const Format& format) {
  const Real real = decode(cut(bits, format.bits()), format);
  if (real.isNan()) return std::nan("");
  const double size = real.isInfinite() ? HUGE_VAL
                      : real.isZero()
                          ? 0.0
                          : std::ldexp(static_cast<double>(real.mantissa), real.exponent);
  return real.negative ? -size : size;
}

void smallPairs(Forms& forms) {
  for (const std::string& name : expand("cvt.rn.satfinite(|.relu).(e4m3x2|e5m2x2).(f32|f16x2)")) {
    const Words words(name);
    const Small to(words.last(1));
    const bool relu = words.has("relu"), wide = words.last() == "f32";
    const auto reference = [=](const u64* s, u64* d) {
      const double above = wide ? doubleOf(s[0], kF32) : doubleOf(s[0] >> 16, kF16),
                   below = wide ? doubleOf(s[1], kF32) : doubleOf(s[0], kF16);
      d[0] = to.narrow(above, relu) << 8 | to.narrow(below, relu);
    };
    const std::vector<Kind> sources =
        wide ? std::vector<Kind>{Kind::F32, Kind::F32} : std::vector<Kind>{Kind::F16x2};
    forms.push_back({name, {Kind::Int16}, sources, {}, reference, {}, {}});
  }
  for (const std::string& name : expand("cvt.rn(|.relu).f16x2.(e4m3x2|e5m2x2)")) {
    const Words words(name);
    const Small from(words.last());
    const bool relu = words.has("relu");
    const auto one = [=](u64 code) -> u64 {
      const auto size = static_cast<unsigned>(code & 0x7f);
      const bool negative = code & 0x80;
      if (size > from.infinity() || size == 0x7f) return kF16.nan;
      if (relu && negative) return 0;
      const u64 sign = negative ? kF16.sign() : 0;
      if (size == from.infinity()) return sign | kF16.infinity();
      Real exact = realOf(static_cast<i128>(std::ldexp(from.value(size), 16)));
      if (!exact.isZero()) exact.exponent -= 16;
      return sign | encode(exact, kF16, Rounding::Nearest);
    };
    const auto reference = [=](const u64* s, u64* d) {
      d[0] = one(s[0] >> 8 & 0xff) << 16 | one(s[0] & 0xff);
    };
    forms.push_back({name, {Kind::Int32}, {Kind::Int16}, {}, reference, {}, {}});
  }
}

void packed(Forms& forms) {
  for (const char* pattern :
       {"cvt.pack.sat.(u16|s16).s32", "cvt.pack.sat.(u8|s8|u4|s4|u2|s2).s32.b32"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const bool three = words.last() == "b32";
      const Integer to{static_cast<unsigned>(std::stoi(words[3].substr(1))), words[3][0] == 's'};
      const auto reference = [=](const u64* s, u64* d) {
        const auto one = [&](u64 v) {
          return cut(static_cast<u128>(clampTo(numberIn(v, {32, true}), to)), to.bits);
        };
        d[0] = (three ? s[2] << (2 * to.bits) : 0) | one(s[0]) << to.bits | one(s[1]);
      };
      forms.push_back({name,
                       {Kind::Int32},
                       std::vector<Kind>(three ? 3 : 2, Kind::Int32),
                       {},
                       reference,
                       {},
                       {}});
    }
  }
}

}  // namespace

void convertForms(Forms& forms) {
  const std::string toIntegral = "(.rni|.rzi|.rmi|.rpi)", rounded = "(.rn|.rz|.rm|.rp)";
  integers(forms);
  all(forms, "cvt" + toIntegral + "(|.ftz)(|.sat)." + kIntegers + ".f32");
  all(forms, "cvt" + toIntegral + "(|.sat)." + kIntegers + ".(f64|f16)");
  all(forms, "cvt" + toIntegral + ".(u16|u32|u64|s16|s32|s64).bf16");
  all(forms, "cvt" + rounded + "(|.ftz)(|.sat).f32." + kIntegers);
  all(forms, "cvt" + rounded + "(|.sat).(f64|f16)." + kIntegers);
  all(forms, "cvt" + rounded + ".bf16.(u16|u32|u64|s16|s32|s64)");
  all(forms, "cvt(|.rni|.rzi|.rmi|.rpi)(|.ftz)(|.sat).f32.f32");
  all(forms, "cvt(|.rni|.rzi|.rmi|.rpi)(|.sat).(f64.f64|f16.f16)");
  all(forms, "cvt" + toIntegral + ".bf16.bf16");
  all(forms, "cvt" + rounded + ".(f16.bf16|bf16.f16)");
  all(forms, "cvt" + rounded + "(|.ftz)(|.sat).f32.f64");
  all(forms, "cvt(|.ftz)(|.sat).(f64.f32|f32.f16)");
  all(forms, "cvt(|.ftz).f32.bf16");
  all(forms, "cvt(|.sat).f64.f16");
  all(forms, "cvt.f64.bf16");
  all(forms, "cvt" + rounded + "(|.ftz)(|.sat).f16.f32");
  all(forms, "cvt" + rounded + "(|.sat).f16.f64");
  all(forms, "cvt" + rounded + ".bf16.f64");
  all(forms, "cvt(.rn|.rz)(|.relu)(|.satfinite).(f16|bf16).f32");
  all(forms, "cvt(.rm|.rp).bf16.f32");
  all(forms, "cvt(.rn|.rz)(|.relu).tf32.f32");
  all(forms, "cvt.rna(|.satfinite).tf32.f32");
  pairs(forms);
  smallPairs(forms);
  packed(forms);
}

}  // namespace instructions
