// add, sub, mul, mad, div, rem, min, max and their like, on integers.
#include <algorithm>

#include "native/simulator/test/instructions/integers.h"

namespace instructions {
namespace {

/// Computes on the numbers that the sources are; the result is cut to its type.
using OnNumbers = i128 (*)(const i128* v, Integer type);

void plain(Forms& forms, std::string_view pattern, unsigned sources, OnNumbers compute) {
  for (const std::string& name : expand(pattern)) {
    const Integer type = integerType(Words(name).last());
    const auto reference = [=](const u64* s, u64* d) {
      i128 v[3] = {};
      for (unsigned i = 0; i < sources; ++i) v[i] = numberIn(s[i], type);
      d[0] = cut(static_cast<u128>(compute(v, type)), type.bits);
    };
    forms.push_back(
        {name, {kindOf(type)}, std::vector<Kind>(sources, kindOf(type)), {}, reference, {}, {}});
  }
}

i128 product(const i128* v) {
  return static_cast<i128>(static_cast<u128>(v[0]) * static_cast<u128>(v[1]));
}
i128 sum(i128 a, i128 b) { return static_cast<i128>(static_cast<u128>(a) + static_cast<u128>(b)); }
i128 upper(const i128* v, Integer type) {
  return static_cast<i128>(static_cast<u128>(product(v)) >> type.bits);
}
i128 magnitude(i128 v) { return v < 0 ? -v : v; }

/// The product of the lower 24 bits of both, 48 bits wide.
i128 product24(const i128* v, Integer type) {
  const Integer narrow{24, type.negative};
  return numberIn(static_cast<u64>(v[0]), narrow) * numberIn(static_cast<u64>(v[1]), narrow);
}

void sums(Forms& forms) {
  plain(forms, "add.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[0] + v[1]; });
  plain(forms, "sub.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[0] - v[1]; });
  plain(forms, "add.sat.s32", 2,
        [](const i128* v, Integer type) { return clampTo(v[0] + v[1], type); });
  plain(forms, "sub.sat.s32", 2,
        [](const i128* v, Integer type) { return clampTo(v[0] - v[1], type); });
  plain(forms, "sad.(u16|u32|u64|s16|s32|s64)", 3,
        [](const i128* v, Integer) { return v[2] + magnitude(v[0] - v[1]); });
  plain(forms, "neg.(s16|s32|s64)", 1, [](const i128* v, Integer) { return -v[0]; });
  plain(forms, "abs.(s16|s32|s64)", 1, [](const i128* v, Integer) { return magnitude(v[0]); });
  plain(forms, "min.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[0] < v[1] ? v[0] : v[1]; });
  plain(forms, "max.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[0] < v[1] ? v[1] : v[0]; });
  plain(forms, "min.relu.s32", 2,
        [](const i128* v, Integer) { return std::max<i128>(0, std::min(v[0], v[1])); });
  plain(forms, "max.relu.s32", 2,
        [](const i128* v, Integer) { return std::max<i128>(0, std::max(v[0], v[1])); });
}

void products(Forms& forms) {
  plain(forms, "mul.lo.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return product(v); });
  plain(forms, "mul.hi.(u16|u32|u64|s16|s32|s64)", 2, upper);
  plain(forms, "mad.lo.(u16|u32|u64|s16|s32|s64)", 3,
        [](const i128* v, Integer) { return sum(product(v), v[2]); });
  plain(forms, "mad.hi.(u16|u32|u64|s16|s32|s64)", 3,
        [](const i128* v, Integer type) { return sum(upper(v, type), v[2]); });
  plain(forms, "mad.hi.sat.s32", 3,
        [](const i128* v, Integer type) { return clampTo((product(v) >> 32) + v[2], type); });
  plain(forms, "mul24.lo.(u32|s32)", 2, product24);
  plain(forms, "mul24.hi.(u32|s32)", 2,
        [](const i128* v, Integer type) { return product24(v, type) >> 16; });
  plain(forms, "mad24.lo.(u32|s32)", 3,
        [](const i128* v, Integer type) { return product24(v, type) + v[2]; });
  plain(forms, "mad24.hi.(u32|s32)", 3,
        [](const i128* v, Integer type) { return (product24(v, type) >> 16) + v[2]; });
  plain(forms, "mad24.hi.sat.s32", 3, [](const i128* v, Integer type) {
    return clampTo((product24(v, type) >> 16) + v[2], type);
  });
}

// PTX leaves division by zero to the machine; the results are the H200's.
void quotients(Forms& forms) {
  plain(forms, "div.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[1] == 0 ? i128{-1} : v[0] / v[1]; });
  plain(forms, "rem.(u16|u32|u64|s16|s32|s64)", 2,
        [](const i128* v, Integer) { return v[1] == 0 ? i128{-1} : v[0] % v[1]; });
}

void wide(Forms& forms) {
  for (const std::string& name : expand("(mul|mad).wide.(u16|u32|s16|s32)")) {
    const Words words(name);
    const Integer type = integerType(words.last()), twice{2 * type.bits, type.negative};
    const bool adds = words.opcode() == "mad";
    std::vector<Kind> sources{kindOf(type), kindOf(type)};
    if (adds) sources.push_back(kindOf(twice));
    const auto reference = [=](const u64* s, u64* d) {
      const i128 term = numberIn(s[0], type) * numberIn(s[1], type);
      d[0] = cut(static_cast<u128>(term + (adds ? numberIn(s[2], twice) : 0)), twice.bits);
    };
    forms.push_back({name, {kindOf(twice)}, sources, {}, reference, {}, {}});
  }
}

/// The element of a packed register, as a number.
i128 element(u64 word, unsigned index, unsigned bits, bool negative) {
  return numberIn(word >> (bits * index), {bits, negative});
}

void dotProducts(Forms& forms) {
  for (const std::string& name : expand("(dp4a|dp2a.lo|dp2a.hi).(u32|s32).(u32|s32)")) {
    const Words words(name);
    const bool four = words.opcode() == "dp4a", signedA = words.last(1) == "s32",
               signedB = words.last() == "s32";
    const unsigned count = four ? 4 : 2, first = words.has("hi") ? 2 : 0;
    const auto reference = [=](const u64* s, u64* d) {
      i128 total = numberIn(s[2], {32, signedA || signedB});
      for (unsigned i = 0; i < count; ++i) {
        total += element(s[0], i, 32 / count, signedA) * element(s[1], first + i, 8, signedB);
      }
      d[0] = cut(static_cast<u128>(total), 32);
    };
    const Kind kindA = four ? Kind::Quad8 : Kind::Pair16;
    forms.push_back(
        {name, {Kind::Int32}, {kindA, Kind::Quad8, Kind::Int32}, {}, reference, {}, {}});
  }
}

void packedPairs(Forms& forms) {
  for (const char* pattern : {"add.(u16x2|s16x2)", "(min|max).(u16x2|s16x2|relu.s16x2)"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const bool negative = words.last()[0] == 's', relu = words.has("relu");
      const char what = words.opcode()[1];  // d: add, i: min, a: max
      const auto reference = [=](const u64* s, u64* d) {
        d[0] = 0;
        for (unsigned i = 0; i < 2; ++i) {
          const i128 a = element(s[0], i, 16, negative), b = element(s[1], i, 16, negative);
          const i128 value = what == 'd' ? a + b : what == 'i' ? std::min(a, b) : std::max(a, b);
          d[0] |= cut(static_cast<u128>(relu ? std::max<i128>(value, 0) : value), 16) << (16 * i);
        }
      };
      forms.push_back({name, {Kind::Pair16}, {Kind::Pair16, Kind::Pair16}, {}, reference, {}, {}});
    }
  }
}

}  // namespace

void integerForms(Forms& forms) {
  sums(forms);
  products(forms);
  quotients(forms);
  wide(forms);
  dotProducts(forms);
  packedPairs(forms);
}

/// Each chain sets the carry from the last operand, runs the form, and reads the carry that is
/// there afterwards.
void carryForms(Forms& forms) {
  for (const std::string& name :
       expand("(add|addc|sub|subc|mad.lo|mad.hi|madc.lo|madc.hi)(|.cc).(u32|s32|u64|s64)")) {
    const Words words(name);
    const bool in = words.opcode().back() == 'c', out = words.has("cc"),
               subtracts = words.opcode().starts_with("sub");
    if (!in && !out) continue;
    const Integer type = integerType(words.last());
    const bool multiplies = words.opcode().starts_with("mad"), high = words.has("hi");
    const unsigned operands = multiplies ? 3 : 2;
    const std::string bits = "b" + std::to_string(type.bits),
                      suffix = (subtracts ? "subc.u" : "addc.u") + std::to_string(type.bits);
    const std::string carry = "%s" + std::to_string(operands);
    std::string body = subtracts ? "sub.cc.u32 %t0, 0, " + carry + ";"
                                 : "add.cc.u32 %t0, " + carry + ", 0xffffffff;";
    body += name + " %d0, %s0, %s1" + (multiplies ? ", %s2" : "") + ";" + suffix + " %d1, 0, 0;";
    std::vector<Kind> sources(operands, kindOf(type));
    sources.push_back(Kind::Bit);
    const auto reference = [=](const u64* s, u64* d) {
      const Integer plainType{type.bits, false};
      i128 a = numberIn(s[0], plainType), b = numberIn(s[1], plainType);
      if (multiplies) {
        const i128 v[2] = {numberIn(s[0], type), numberIn(s[1], type)};
        const u128 whole = static_cast<u128>(product(v));
        a = numberIn(static_cast<u64>(high ? whole >> type.bits : whole), plainType);
        b = numberIn(s[2], plainType);
      }
      const i128 before = static_cast<i128>(s[operands] & 1), given = in ? before : 0;
      const i128 result = subtracts ? a - b - given : a + b + given;
      const i128 after = out ? static_cast<i128>(result < 0 || result >> type.bits) : before;
      d[0] = cut(static_cast<u128>(result), type.bits);
      d[1] = cut(static_cast<u128>(subtracts ? -after : after), type.bits);
    };
    forms.push_back({name, {kindOf(type), kindOf(type)}, sources, body, reference, {}, {}});
  }
}

}  // namespace instructions
