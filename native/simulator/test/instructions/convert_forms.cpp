// cvt: every legal pair of types, with rounding, .ftz, .sat, .relu and .satfinite.
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
  all(forms, "cvt(.rn|.rz)(|.relu).tf32.f32");
  all(forms, "cvt.rna(|.satfinite).tf32.f32");
  pairs(forms);
}

}  // namespace instructions
