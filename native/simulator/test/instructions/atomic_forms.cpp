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

}  // namespace

void atomicForms(Forms& forms) { atoms(forms); }

}  // namespace instructions
