// setp, set, selp, slct.
#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

/// Less, equal, greater or 2: not ordered.
int ordered(const std::string& type, u64 a, u64 b, bool flush) {
  if (const Integer integer = integerType(type); integer.bits) {
    const i128 x = numberIn(a, integer), y = numberIn(b, integer);
    return x < y ? -1 : x > y;
  }
  const Format format = formatNamed(type);
  a = low(a, format);
  b = low(b, format);
  return order(decode(flush ? flushed(a, format) : a, format),
               decode(flush ? flushed(b, format) : b, format));
}

bool holds(const std::string& compare, int how) {
  if (compare == "num") return how != 2;
  if (compare == "nan") return how == 2;
  if (how == 2) return compare.size() == 3;  // equ, neu, ltu, leu, gtu, geu hold if unordered
  const std::string plain = compare.substr(0, 2);
  if (plain == "eq") return how == 0;
  if (plain == "ne") return how != 0;
  if (plain == "lt" || plain == "lo") return how < 0;
  if (plain == "le" || plain == "ls") return how <= 0;
  if (plain == "gt" || plain == "hi") return how > 0;
  return how >= 0;
}

bool combined(const Words& words, bool truth, bool other) {
  if (words.has("and")) return truth && other;
  if (words.has("or")) return truth || other;
  return words.has("xor") ? truth != other : truth;
}

bool isCombined(const Words& words) {
  return words.has("and") || words.has("or") || words.has("xor");
}

Kind kindNamed(const std::string& type) {
  if (const Integer integer = integerType(type); integer.bits) return kindOf(integer);
  if (type == "f16x2") return Kind::F16x2;
  return type == "bf16x2" ? Kind::BF16x2 : kindOf(formatNamed(type));
}

constexpr const char* kSigned = "(eq|ne|lt|le|gt|ge)";
constexpr const char* kUnsigned = "(eq|ne|lt|le|gt|ge|lo|ls|hi|hs)";
constexpr const char* kFloat = "(eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan)";
constexpr const char* kBoolean = "(|.and|.or|.xor)";

void addPredicate(Forms& forms, const std::string& name, bool negated) {
  const Words words(name);
  const std::string type = words.last(), compare = words[1];
  const bool pair = type.ends_with("x2"), combines = isCombined(words),
             single = type == "f16" || type == "bf16";
  const auto reference = [=](const u64* s, u64* d) {
    const bool other = bool(s[2] & 1) != negated;
    const bool first = holds(compare, ordered(type, s[0], s[1], words.has("ftz")));
    const bool second =
        pair ? holds(compare, ordered(type, s[0] >> 16, s[1] >> 16, words.has("ftz"))) : !first;
    d[0] = combined(words, first, other);
    d[1] = combined(words, second, other);
  };
  std::vector<Kind> sources{kindNamed(type), kindNamed(type)};
  if (combines) sources.push_back(Kind::Pred);
  const std::string last = combines ? negated ? ", !%s2;" : ", %s2;" : ";";
  if (!single)
    forms.push_back({name,
                     {Kind::Pred, Kind::Pred},
                     sources,
                     name + " %d0|%d1, %s0, %s1" + last,
                     reference,
                     {},
                     negated ? "negated" : ""});
  if (!pair)
    forms.push_back({name,
                     {Kind::Pred},
                     sources,
                     name + " %d0, %s0, %s1" + last,
                     reference,
                     {},
                     negated ? "negated" : "one"});
}

void addValue(Forms& forms, const std::string& name, bool negated) {
  const Words words(name);
  const std::string from = words.last(), to = words.last(1), compare = words[1];
  const bool pair = from.ends_with("x2"), combines = isCombined(words);
  const Integer integer = integerType(to);
  const unsigned bits = pair ? 16 : registerBits(kindNamed(to));
  const u64 truth = integer.bits ? cut(~u64{0}, bits) : formatNamed(to).one();
  const auto reference = [=](const u64* s, u64* d) {
    const bool other = bool(s[2] & 1) != negated;
    const auto half = [&](unsigned shift) {
      return combined(words,
                      holds(compare, ordered(from, s[0] >> shift, s[1] >> shift, words.has("ftz"))),
                      other)
                 ? truth
                 : 0;
    };
    d[0] = pair ? half(0) | half(16) << 16 : half(0);
  };
  std::vector<Kind> sources{kindNamed(from), kindNamed(from)};
  if (combines) sources.push_back(Kind::Pred);
  const std::string body = combines && negated ? name + " %d0, %s0, %s1, !%s2;" : "";
  forms.push_back({name, {kindNamed(to)}, sources, body, reference, {}, negated ? "negated" : ""});
  forms.back().guardWorks = false;
}

void predicates(Forms& forms) {
  const std::string start = "setp.";
  for (const std::string& pattern : {start + kSigned + kBoolean + ".(s16|s32|s64)",
                                     start + kUnsigned + kBoolean + ".(u16|u32|u64)",
                                     start + "(eq|ne)" + kBoolean + ".(b16|b32|b64)",
                                     start + kFloat + kBoolean + "(|.ftz).(f32|f16|f16x2)",
                                     start + kFloat + kBoolean + ".(f64|bf16|bf16x2)"}) {
    for (const std::string& name : expand(pattern)) {
      addPredicate(forms, name, false);
      if (isCombined(Words(name)) && name.find(".eq") != std::string::npos)
        addPredicate(forms, name, true);
    }
  }
}

void values(Forms& forms) {
  const std::string start = "set.";
  for (const std::string& pattern :
       {start + kSigned + kBoolean + ".(u32|s32|f32).(s16|s32|s64)",
        start + kUnsigned + kBoolean + ".(u32|s32|f32).(u16|u32|u64)",
        start + "(eq|ne)" + kBoolean + ".(u32|s32|f32).(b16|b32|b64)",
        start + kFloat + kBoolean + "(|.ftz).(u32|s32|f32).(f32)",
        start + kFloat + kBoolean + ".(u32|s32|f32).(f64)",
        start + kFloat + kBoolean + "(|.ftz).(f16|u16|s16|u32|s32).(f16)",
        start + kFloat + kBoolean + ".(bf16|u16|s16|u32|s32).(bf16)",
        start + kFloat + kBoolean + "(|.ftz).(f16x2).(f16x2)",
        start + kFloat + kBoolean + ".(bf16x2|u32|s32).(bf16x2)",
        start + kFloat + kBoolean + "(|.ftz).(u32|s32).(f16x2)",
        start + kSigned + kBoolean + ".(f16|bf16).(s16|s32|s64)",
        start + kUnsigned + kBoolean + ".(f16|bf16).(u16|u32|u64)",
        start + "(eq|ne)" + kBoolean + ".(f16|bf16).(b16|b32|b64)",
        start + kFloat + kBoolean + "(|.ftz).f16.f32",
        start + kFloat + kBoolean + ".(bf16.f32|f16.f64|bf16.f64|bf16.f16)"}) {
    for (const std::string& name : expand(pattern)) {
      addValue(forms, name, false);
      if (isCombined(Words(name)) && name.find(".eq") != std::string::npos)
        addValue(forms, name, true);
    }
  }
}

void selections(Forms& forms) {
  for (const std::string& name : expand("selp.(b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64)")) {
    const Kind kind = kindNamed(Words(name).last());
    const auto reference = [](const u64* s, u64* d) { d[0] = s[2] & 1 ? s[0] : s[1]; };
    forms.push_back({name, {kind}, {kind, kind, Kind::Pred}, {}, reference, {}, {}});
  }
  for (const char* pattern : {"slct.(b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64).s32",
                              "slct(|.ftz).(b16|b32|b64|u16|u32|u64|s16|s32|s64|f32|f64).f32"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Kind kind = kindNamed(words.last(1)), sign = kindNamed(words.last());
      const bool number = words.last() == "s32";
      const auto reference = [=](const u64* s, u64* d) {
        const u64 value = words.has("ftz") ? flushed(low(s[2], kF32), kF32) : low(s[2], kF32);
        const int how =
            number ? ordered("s32", s[2], 0, false) : order(decode(value, kF32), Real{});
        const bool first = how == 0 || how == 1;
        d[0] = first ? s[0] : s[1];
      };
      forms.push_back({name, {kind}, {kind, kind, sign}, {}, reference, {}, {}});
    }
  }
}

}  // namespace

void compareForms(Forms& forms) {
  predicates(forms);
  values(forms);
  selections(forms);
}

}  // namespace instructions
