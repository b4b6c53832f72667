// atom and red: what one thread alone finds before and after.
#include "native/simulator/test/instructions/memory_shared.h"

namespace instructions {
namespace {

struct Atom {
  const char* operation;
  const char* type;
  u64 (*next)(u64 before, u64 b, u64 c, const Format& format, bool flush);
};

Integer integerIn(const Format& format) { return {format.precision, format.exponentBits != 0}; }

/// The type of an integer atom travels as a Format: precision is its width, exponentBits says that
/// it has a sign.
template <bool greatest>
u64 extremeOf(u64 a, u64 b, u64, const Format& format, bool) {
  const Integer type = integerIn(format);
  return (numberIn(a, type) < numberIn(b, type)) != greatest ? a : b;
}

u64 floatSum(u64 a, u64 b, u64, const Format& format, bool flush) {
  const auto operand = [&](u64 bits) {
    return decode(flush ? flushed(low(bits, format), format) : low(bits, format), format);
  };
  const Real exact = sum(operand(a), operand(b), Rounding::Nearest);
  return flush ? encodeFlushed(exact, format, Rounding::Nearest)
               : encode(exact, format, Rounding::Nearest);
}
u64 pairSum(u64 a, u64 b, u64 c, const Format& format, bool flush) {
  return floatSum(a, b, c, format, flush) | floatSum(a >> 16, b >> 16, c, format, flush) << 16;
}

constexpr Atom kAtoms[] = {
    {"add", "u32", [](u64 a, u64 b, u64, const Format&, bool) { return a + b; }},
    {"add", "s32", [](u64 a, u64 b, u64, const Format&, bool) { return a + b; }},
    {"add", "u64", [](u64 a, u64 b, u64, const Format&, bool) { return a + b; }},
    {"and", "b32", [](u64 a, u64 b, u64, const Format&, bool) { return a & b; }},
    {"or", "b32", [](u64 a, u64 b, u64, const Format&, bool) { return a | b; }},
    {"xor", "b32", [](u64 a, u64 b, u64, const Format&, bool) { return a ^ b; }},
    {"and", "b64", [](u64 a, u64 b, u64, const Format&, bool) { return a & b; }},
    {"or", "b64", [](u64 a, u64 b, u64, const Format&, bool) { return a | b; }},
    {"xor", "b64", [](u64 a, u64 b, u64, const Format&, bool) { return a ^ b; }},
    {"exch", "b32", [](u64, u64 b, u64, const Format&, bool) { return b; }},
    {"exch", "b64", [](u64, u64 b, u64, const Format&, bool) { return b; }},
    {"cas", "b16", [](u64 a, u64 b, u64 c, const Format&, bool) { return a == b ? c : a; }},
    {"cas", "b32", [](u64 a, u64 b, u64 c, const Format&, bool) { return a == b ? c : a; }},
    {"cas", "b64", [](u64 a, u64 b, u64 c, const Format&, bool) { return a == b ? c : a; }},
    {"inc", "u32", [](u64 a, u64 b, u64, const Format&, bool) { return a >= b ? 0 : a + 1; }},
    {"dec", "u32",
     [](u64 a, u64 b, u64, const Format&, bool) { return a == 0 || a > b ? b : a - 1; }},
    {"min", "u32", extremeOf<false>},
    {"min", "s32", extremeOf<false>},
    {"min", "u64", extremeOf<false>},
    {"min", "s64", extremeOf<false>},
    {"max", "u32", extremeOf<true>},
    {"max", "s32", extremeOf<true>},
    {"max", "u64", extremeOf<true>},
    {"max", "s64", extremeOf<true>},
    {"add", "f32", floatSum},
    {"add", "f64", floatSum},
    {"add.noftz", "f16", floatSum},
    {"add.noftz", "bf16", floatSum},
    {"add.noftz", "f16x2", pairSum},
    {"add.noftz", "bf16x2", pairSum},
};

Kind kindOfAtom(const std::string& type) {
  if (const Integer integer = integerType(type); integer.bits) return kindOf(integer);
  return type == "f16x2"    ? Kind::F16x2
         : type == "bf16x2" ? Kind::BF16x2
                            : kindOf(formatNamed(type));
}

void addAtom(Forms& forms, const Atom& atom, bool returns, const Place& place,
             const std::string& words, const char* where) {
  const std::string type = atom.type, operation = atom.operation, space = place.space;
  const bool compares = operation == "cas";
  if (!returns && (compares || operation == "exch")) return;
  const Kind kind = kindOfAtom(type);
  const Integer integer = integerType(type);
  const Format format =
      integer.bits ? Format{integer.bits, integer.negative, 0} : formatNamed(type);
  const std::string plain = space + ".b" + std::to_string(registerBits(kind));
  const std::string name =
      (returns ? "atom" : "red") + words + space + "." + operation + "." + type;
  std::string body = std::string(place.setup) + "st" + plain + " [%a], %s0;" + name +
                     (returns ? " %d1, [%a], " : " [%a], ");
  body += compares ? "%s1, %s2;" : "%s1;";
  body += "ld" + plain + " %d0, [%a];";
  // atom.add.f32 in global memory flushes subnormal numbers.
  const bool flush = type == "f32" && std::string(where) != "shared";
  const auto reference = [=](const u64* s, u64* d) {
    const unsigned bits = registerBits(kind);
    d[0] = cut(atom.next(cut(s[0], bits), cut(s[1], bits), cut(s[2], bits), format, flush), bits);
    d[1] = cut(s[0], bits);
  };
  std::vector<Kind> sources{kind, kind};
  if (compares) sources.push_back(kind);
  const Check check = integer.bits                          ? Check{}
                      : registerBits(kind) == format.bits() ? anyNan(format)
                                                            : Check{};
  forms.push_back(
      {name, std::vector<Kind>(returns ? 2 : 1, kind), sources, body, reference, check, where});
}

void atoms(Forms& forms) {
  static const std::string generic = std::string(kShared) + "cvta.shared.u64 %a, %a;";
  for (const Atom& atom : kAtoms) {
    for (const bool returns : {true, false}) {
      addAtom(forms, atom, returns, {".global", kGlobal}, "", "global");
      addAtom(forms, atom, returns, {".shared", kShared}, "", "shared");
      addAtom(forms, atom, returns, {"", kGlobal}, "", "generic global");
      addAtom(forms, atom, returns, {"", generic.c_str()}, "", "shared");
    }
  }
  for (const char* words : {".relaxed.gpu", ".acquire.cta", ".release.sys", ".acq_rel.cluster",
                            ".relaxed.cta", ".acq_rel.gpu"}) {
    addAtom(forms, kAtoms[0], true, {".global", kGlobal}, words, "global");
    addAtom(forms, kAtoms[0], true, {".shared", kShared}, words, "shared");
  }
  for (const char* words : {".relaxed.gpu", ".release.sys", ".release.cta"})
    addAtom(forms, kAtoms[3], false, {".global", kGlobal}, words, "global");
}

struct Vector {
  const char* type;
  unsigned count;
  bool onlyAdd;
};
// Of .v2 with 16-bit elements a program has the packed type.
constexpr Vector kVectors[] = {
    {"f32", 2, true},     {"f32", 4, true},     {"f16", 4, false},   {"f16", 8, false},
    {"bf16", 4, false},   {"bf16", 8, false},   {"f16x2", 2, false}, {"f16x2", 4, false},
    {"bf16x2", 2, false}, {"bf16x2", 4, false},
};

/// How an element of a vector changes. PTX says nothing of NaN and of zeros with different signs
/// for min and max: they are not compared.
struct Change {
  std::string operation;
  Format format;
  u64 next(u64 a, u64 b) const {
    if (operation == "add") return floatSum(a, b, 0, format, format == kF32);
    const int less = order(decode(a, format), decode(b, format));
    return (less == 1) == (operation == "max") ? a : b;
  }
  bool open(u64 a, u64 b) const {
    const Real x = decode(a, format), y = decode(b, format);
    return x.isNan() || y.isNan() || (operation != "add" && x.isZero() && y.isZero());
  }
};

/// 8 or 16 bytes of memory: %s0 and %s1; the operands are %s2 and %s3, or %s1.
void addVector(Forms& forms, const Vector& vector, const std::string& operation, bool returns) {
  const std::string type = vector.type;
  const bool narrow = type != "f32", halves = type == "f16" || type == "bf16";
  const Change change{operation, formatNamed(type)};
  const unsigned bits = change.format.bits(), registerWidth = halves ? 16 : 32,
                 words = vector.count * registerWidth <= 64 ? 1 : 2, inWord = 64 / registerWidth;
  const std::string name = std::string(returns ? "atom" : "red") + ".global." + operation +
                           (narrow ? ".noftz" : "") + ".v" + std::to_string(vector.count) + "." +
                           type;
  std::string body = "st.global.b64 [%to], %s0;", list, before;
  if (words == 2) body += "st.global.b64 [%to+8], %s1;";
  for (unsigned word = 0; word < words; ++word) {
    std::string part;
    for (unsigned i = 0; i < inWord; ++i) {
      const std::string number = std::to_string(word * inWord + i);
      body += ".reg .b" + std::to_string(registerWidth) + " %v" + number + ", %o" + number + ";";
      part += (i ? ", %v" : "%v") + number;
      list += (list.empty() ? "%v" : ", %v") + number;
      before += (before.empty() ? "%o" : ", %o") + number;
    }
    body += "mov.b64 {" + part + "}, %s" + std::to_string(words + word) + ";";
  }
  body += name + (returns ? " {" + before + "}, " : " ") + "[%to], {" + list + "};";
  for (unsigned word = 0; word < words; ++word) {
    const auto after = [=](const u64* s, u64* d) {
      for (unsigned at = 0; at < 64; at += bits)
        d[0] |= change.next(cut(s[word] >> at, bits), cut(s[words + word] >> at, bits)) << at;
    };
    const Check check = [=](const u64* s, u64 wanted, u64 got) {
      for (unsigned at = 0; at < 64; at += bits) {
        const u64 a = cut(s[word] >> at, bits), b = cut(s[words + word] >> at, bits);
        if (cut(wanted >> at, bits) != cut(got >> at, bits) && !change.open(a, b)) return false;
      }
      return true;
    };
    const std::string end = "ld.global.b64 %d0, [%to+" + std::to_string(8 * word) + "];";
    const std::vector<Kind> sources(2 * words, Kind::Int64);
    forms.push_back({name,
                     {Kind::Int64},
                     sources,
                     body + end,
                     [=](const u64* s, u64* d) {
                       d[0] = 0;
                       after(s, d);
                     },
                     check,
                     "word " + std::to_string(word)});
    if (!returns) continue;
    std::string part;
    for (unsigned i = 0; i < inWord; ++i)
      part += (i ? ", %o" : "%o") + std::to_string(word * inWord + i);
    forms.push_back({name,
                     {Kind::Int64},
                     sources,
                     body + "mov.b64 %d0, {" + part + "};",
                     [=](const u64* s, u64* d) { d[0] = s[word]; },
                     {},
                     "before, word " + std::to_string(word)});
  }
}

void vectors(Forms& forms) {
  for (const Vector& vector : kVectors) {
    for (const char* operation : {"add", "min", "max"}) {
      if (vector.onlyAdd && operation[0] != 'a') continue;
      for (const bool returns : {true, false}) addVector(forms, vector, operation, returns);
    }
  }
}

/// 16 bytes at once: the memory has %s0 and %s1, %q1 has %s2 and %s3.
void wholes(Forms& forms, const Place& place) {
  const std::string space = place.space, plain = space + ".b64";
  const std::string start = place.setup + (".reg .b128 %q0, %q1, %q2; st" + plain) +
                            " [%a], %s0; st" + plain +
                            " [%a+8], %s1; mov.b128 %q1, {%s2, %s3}; mov.b128 %q0, {%s0, %s1};";
  const std::string after = "ld" + plain + " %d0, [%a]; ld" + plain + " %d1, [%a+8];",
                    before = "mov.b128 {%d0, %d1}, %q2;";
  const auto add = [&](const std::string& name, const std::string& body, bool exchanged,
                       const char* remark) {
    forms.push_back({name,
                     std::vector<Kind>(2, Kind::Int64),
                     std::vector<Kind>(4, Kind::Int64),
                     start + body,
                     [=](const u64* s, u64* d) {
                       d[0] = s[exchanged ? 2 : 0];
                       d[1] = s[exchanged ? 3 : 1];
                     },
                     {},
                     remark});
  };
  const std::string load = "ld" + space + ".b128", store = "st" + space + ".b128",
                    exchange = "atom" + space + ".exch.b128",
                    compare = "atom" + space + ".cas.b128";
  add(load, load + " %q2, [%a];" + before, false, "");
  add(store, store + " [%a], %q1;" + after, true, "");
  add(exchange, exchange + " %q2, [%a], %q1;" + after, true, "after");
  add(exchange, exchange + " %q2, [%a], %q1;" + before, false, "before");
  add(compare, compare + " %q2, [%a], %q0, %q1;" + after, true, "equal");
  add(compare, compare + " %q2, [%a], %q0, %q1;" + before, false, "before");
  add(compare,
      "xor.b64 %x0, %s1, 1; mov.b128 %q0, {%s0, %x0};" + compare + " %q2, [%a], %q0, %q1;" + after,
      false, "different");
}

}  // namespace

void atomicForms(Forms& forms) {
  atoms(forms);
  vectors(forms);
  for (const Place& place :
       {Place{".global", kGlobal}, Place{".shared", kShared}, Place{"", kGlobal}})
    wholes(forms, place);
}

}  // namespace instructions
