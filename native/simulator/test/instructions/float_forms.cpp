// f32 and f64: IEEE arithmetic in every rounding mode, minimum and maximum, signs, classes.
#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

Real computed(const std::string& opcode, const Real* v, Rounding rounding) {
  if (opcode == "add") return sum(v[0], v[1], rounding);
  if (opcode == "sub") return sum(v[0], v[1].isNan() ? v[1] : negated(v[1]), rounding);
  if (opcode == "mul") return product(v[0], v[1]);
  if (opcode == "fma" || opcode == "mad") return sum(product(v[0], v[1]), v[2], rounding);
  if (opcode == "div") return quotient(v[0], v[1]);
  if (opcode == "rcp") return quotient(realOf(1), v[0]);
  return squareRoot(v[0]);
}

void arithmetic(Forms& forms, std::string_view pattern, unsigned sources) {
  for (const std::string& name : expand(pattern)) {
    const Words words(name);
    const Format format = formatNamed(words.last());
    const Rounding rounding = roundingIn(words);
    const bool flush = words.has("ftz"), saturate = words.has("sat");
    const auto reference = [=, opcode = words.opcode()](const u64* s, u64* d) {
      Real v[3];
      for (unsigned i = 0; i < sources; ++i)
        v[i] = decode(flush ? flushed(low(s[i], format), format) : s[i], format);
      const Real exact = computed(opcode, v, rounding);
      const u64 result =
          flush ? encodeFlushed(exact, format, rounding) : encode(exact, format, rounding);
      d[0] = saturate ? saturated(result, format) : result;
    };
    // Of f32 PTX names the NaN that comes out; of f64 it does not.
    const Check check = format == kF64 ? anyNan(format) : Check{};
    forms.push_back({name,
                     {kindOf(format)},
                     std::vector<Kind>(sources, kindOf(format)),
                     {},
                     reference,
                     check,
                     {}});
  }
}

void extremes(Forms& forms) {
  for (const char* pattern : {"(min|max)(|.ftz)(|.NaN)(|.xorsign.abs).f32", "(min|max).f64"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Format format = formatNamed(words.last());
      const auto reference = [=](const u64* s, u64* d) {
        d[0] = extreme(words, low(s[0], format), low(s[1], format), format);
      };
      forms.push_back({name,
                       {kindOf(format)},
                       {kindOf(format), kindOf(format)},
                       {},
                       reference,
                       anyNan(format),
                       {}});
    }
  }
}

void signs(Forms& forms) {
  for (const char* pattern : {"(neg|abs)(|.ftz).f32", "(neg|abs).f64"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Format format = formatNamed(words.last());
      const auto reference = [=](const u64* s, u64* d) {
        d[0] = signChanged(words, low(s[0], format), format);
      };
      forms.push_back(
          {name, {kindOf(format)}, {kindOf(format)}, {}, reference, anyNan(format), {}});
    }
  }
  for (const std::string& name : expand("copysign.(f32|f64)")) {
    const Format format = formatNamed(Words(name).last());
    const auto reference = [=](const u64* s, u64* d) {
      d[0] = (s[0] & format.sign()) | (s[1] & (format.sign() - 1));
    };
    forms.push_back(
        {name, {kindOf(format)}, {kindOf(format), kindOf(format)}, {}, reference, {}, {}});
  }
}

void classes(Forms& forms) {
  for (const std::string& name :
       expand("testp.(finite|infinite|number|notanumber|normal|subnormal).(f32|f64)")) {
    const Words words(name);
    const Format format = formatNamed(words.last());
    const auto reference = [=, what = words[1]](const u64* s, u64* d) {
      const Real value = decode(low(s[0], format), format);
      const bool subnormal = isSubnormal(s[0], format),
                 finite = !value.isNan() && !value.isInfinite();
      d[0] = what == "finite"       ? finite
             : what == "infinite"   ? value.isInfinite()
             : what == "number"     ? !value.isNan()
             : what == "notanumber" ? value.isNan()
             : what == "subnormal"  ? subnormal
                                    : finite && !subnormal;  // the H200 counts zero as normal
    };
    forms.push_back({name, {Kind::Pred}, {kindOf(format)}, {}, reference, {}, {}});
    forms.back().guardWorks = false;
  }
}

}  // namespace

u64 extreme(const Words& words, u64 a, u64 b, const Format& format) {
  const bool least = words.opcode() == "min", signs = words.has("xorsign");
  const u64 sign = (a ^ b) & format.sign();
  if (words.has("ftz")) {
    a = flushed(a, format);
    b = flushed(b, format);
  }
  if (isNan(a, format) || isNan(b, format)) {
    if (words.has("NaN") || (isNan(a, format) && isNan(b, format))) return format.nan;
    if (!signs) return isNan(a, format) ? b : a;
  }
  if (signs) {
    a &= format.sign() - 1;
    b &= format.sign() - 1;
  }
  const int how = order(decode(a, format), decode(b, format));
  u64 result = how == 2 ? (isNan(a, format) ? b : a) : (how < 0) == least ? a : b;
  if (how == 0)
    result = (a & format.sign()) == (least ? format.sign() : 0) ? a : b;  // -0 is less than +0
  return signs ? result | sign : result;
}

u64 signChanged(const Words& words, u64 a, const Format& format) {
  if (words.has("ftz")) a = flushed(a, format);
  if (isNan(a, format)) return format.nan;
  return words.opcode() == "neg" ? a ^ format.sign() : a & (format.sign() - 1);
}

void floatForms(Forms& forms) {
  arithmetic(forms, "(add|sub|mul)(|.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f32", 2);
  arithmetic(forms, "(add|sub|mul)(|.rn|.rz|.rm|.rp).f64", 2);
  arithmetic(forms, "(fma|mad)(.rn|.rz|.rm|.rp)(|.ftz)(|.sat).f32", 3);
  arithmetic(forms, "(fma|mad)(.rn|.rz|.rm|.rp).f64", 3);
  arithmetic(forms, "div(.rn|.rz|.rm|.rp)(|.ftz).f32", 2);
  arithmetic(forms, "div(.rn|.rz|.rm|.rp).f64", 2);
  arithmetic(forms, "(rcp|sqrt)(.rn|.rz|.rm|.rp)(|.ftz).f32", 1);
  arithmetic(forms, "(rcp|sqrt)(.rn|.rz|.rm|.rp).f64", 1);
  extremes(forms);
  signs(forms);
  classes(forms);
}

}  // namespace instructions
