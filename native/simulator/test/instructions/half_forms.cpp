// f16, bf16 and their pairs.
#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

using OnHalves = std::function<u64(const u64* s)>;

/// Adds a form; for a packed type `compute` is applied to each half.
void add(Forms& forms, const std::string& name, unsigned sources, const OnHalves& compute,
         bool exactNan) {
  const std::string type = Words(name).last();
  const Format format = formatNamed(type);
  const bool pair = type.ends_with("x2");
  const Kind kind = pair ? (format == kF16 ? Kind::F16x2 : Kind::BF16x2) : kindOf(format);
  const auto reference = [=](const u64* s, u64* d) {
    d[0] = 0;
    for (unsigned half = 0; half < (pair ? 2 : 1); ++half) {
      u64 v[3] = {};
      for (unsigned i = 0; i < sources; ++i) v[i] = cut(s[i] >> (16 * half), 16);
      d[0] |= compute(v) << (16 * half);
    }
  };
  const Check halves = [=](const u64* s, u64 wanted, u64 got) {
    const Check one = anyNan(format);
    return one(s, cut(wanted, 16), cut(got, 16)) &&
           (!pair || one(s, cut(wanted >> 16, 16), cut(got >> 16, 16)));
  };
  forms.push_back({name,
                   {kind},
                   std::vector<Kind>(sources, kind),
                   {},
                   reference,
                   exactNan ? Check{} : halves,
                   {}});
}

Real computed(const std::string& opcode, const Real* v) {
  constexpr Rounding kRounding = Rounding::Nearest;
  if (opcode == "add") return sum(v[0], v[1], kRounding);
  if (opcode == "sub") return sum(v[0], v[1].isNan() ? v[1] : negated(v[1]), kRounding);
  return opcode == "mul" ? product(v[0], v[1]) : sum(product(v[0], v[1]), v[2], kRounding);
}

void arithmetic(Forms& forms, std::string_view pattern, unsigned sources) {
  for (const std::string& name : expand(pattern)) {
    const Words words(name);
    const Format format = formatNamed(words.last());
    const bool flush = words.has("ftz"), saturate = words.has("sat"), relu = words.has("relu");
    const auto compute = [=, opcode = words.opcode()](const u64* s) {
      Real v[3];
      for (unsigned i = 0; i < sources; ++i)
        v[i] = decode(flush ? flushed(s[i], format) : s[i], format);
      const Real exact = computed(opcode, v);
      const u64 result = flush ? encodeFlushed(exact, format, Rounding::Nearest)
                               : encode(exact, format, Rounding::Nearest);
      if (saturate) return saturated(result, format);
      return relu && !isNan(result, format) && (result & format.sign()) ? 0 : result;
    };
    add(forms, name, sources, compute, true);
  }
}

}  // namespace

void halfForms(Forms& forms) {
  arithmetic(forms, "(add|sub|mul)(|.rn)(|.ftz)(|.sat).(f16|f16x2)", 2);
  arithmetic(forms, "(add|sub|mul)(|.rn).(bf16|bf16x2)", 2);
  arithmetic(forms, "fma.rn(|.ftz)(|.sat|.relu).(f16|f16x2)", 3);
  arithmetic(forms, "fma.rn(|.relu).(bf16|bf16x2)", 3);
  for (const char* pattern : {"(min|max)(|.ftz)(|.NaN)(|.xorsign.abs).(f16|f16x2)",
                              "(min|max)(|.NaN)(|.xorsign.abs).(bf16|bf16x2)"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Format format = formatNamed(words.last());
      add(
          forms, name, 2, [=](const u64* s) { return extreme(words, s[0], s[1], format); }, false);
    }
  }
  for (const char* pattern : {"(neg|abs)(|.ftz).(f16|f16x2)", "(neg|abs).(bf16|bf16x2)"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Format format = formatNamed(words.last());
      add(
          forms, name, 1, [=](const u64* s) { return signChanged(words, s[0], format); }, false);
    }
  }
}

}  // namespace instructions
