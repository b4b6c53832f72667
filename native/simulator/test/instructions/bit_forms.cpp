// Logic, shifts, fields, counts, byte permutation, moves.
#include <algorithm>
#include <limits>

#include "native/simulator/test/instructions/integers.h"

namespace instructions {
namespace {

using OnBits = u64 (*)(const u64* s, Integer type);

u64 bitOf(u64 value, u64 index) { return index < 64 ? (value >> index) & 1 : 0; }

void plain(Forms& forms, std::string_view pattern, const std::vector<Kind>& sources,
           OnBits compute) {
  for (const std::string& name : expand(pattern)) {
    const Integer type = integerType(Words(name).last());
    std::vector<Kind> kinds = sources;
    std::replace(kinds.begin(), kinds.end(), Kind::Int64,
                 kindOf(type));  // Int64 stands for the type of the form
    const auto reference = [=](const u64* s, u64* d) {
      u64 v[4] = {};
      for (std::size_t i = 0; i < kinds.size(); ++i) v[i] = cut(s[i], registerBits(kinds[i]));
      d[0] = cut(compute(v, type), type.bits);
    };
    forms.push_back({name, {kindOf(type)}, kinds, {}, reference, {}, {}});
  }
}

constexpr Kind kSame = Kind::Int64;

void logic(Forms& forms) {
  plain(forms, "and.(b16|b32|b64)", {kSame, kSame},
        [](const u64* s, Integer) { return s[0] & s[1]; });
  plain(forms, "or.(b16|b32|b64)", {kSame, kSame},
        [](const u64* s, Integer) { return s[0] | s[1]; });
  plain(forms, "xor.(b16|b32|b64)", {kSame, kSame},
        [](const u64* s, Integer) { return s[0] ^ s[1]; });
  plain(forms, "not.(b16|b32|b64)", {kSame}, [](const u64* s, Integer) { return ~s[0]; });
  plain(forms, "cnot.(b16|b32|b64)", {kSame}, [](const u64* s, Integer) { return u64{s[0] == 0}; });
  plain(forms, "mov.(b16|b32|b64|u16|u32|u64|s16|s32|s64)", {kSame},
        [](const u64* s, Integer) { return s[0]; });
  for (const char* name : {"mov.f32", "mov.f64"}) {
    const Kind kind = name[6] == '2' ? Kind::F32 : Kind::F64;
    forms.push_back({name, {kind}, {kind}, {}, [](const u64* s, u64* d) { d[0] = s[0]; }, {}, {}});
  }
  plain(forms, "brev.(b32|b64)", {kSame}, [](const u64* s, Integer type) {
    u64 result = 0;
    for (unsigned i = 0; i < type.bits; ++i) result |= bitOf(s[0], i) << (type.bits - 1 - i);
    return result;
  });
  const auto predicates = [&](const char* name, unsigned sources, OnBits compute) {
    const auto reference = [=](const u64* s, u64* d) { d[0] = compute(s, {}) & 1; };
    forms.push_back(
        {name, {Kind::Pred}, std::vector<Kind>(sources, Kind::Pred), {}, reference, {}, {}});
  };
  predicates("and.pred", 2, [](const u64* s, Integer) { return s[0] & s[1]; });
  predicates("or.pred", 2, [](const u64* s, Integer) { return s[0] | s[1]; });
  predicates("xor.pred", 2, [](const u64* s, Integer) { return s[0] ^ s[1]; });
  predicates("not.pred", 1, [](const u64* s, Integer) { return ~s[0]; });
  predicates("mov.pred", 1, [](const u64* s, Integer) { return s[0]; });
}

u64 funnel(const u64* s, u64 amount, bool left) {
  const u128 both = static_cast<u128>(s[1]) << 32 | s[0];
  return static_cast<u64>(left ? (both << amount) >> 32 : both >> amount);
}

void shifts(Forms& forms) {
  plain(forms, "shl.(b16|b32|b64)", {kSame, Kind::Amount},
        [](const u64* s, Integer type) { return s[1] >= type.bits ? 0 : s[0] << s[1]; });
  plain(forms, "shr.(b16|b32|b64|u16|u32|u64|s16|s32|s64)", {kSame, Kind::Amount},
        [](const u64* s, Integer type) {
          return static_cast<u64>(numberIn(s[0], type) >> std::min<u64>(s[1], 100));
        });
  const std::vector<Kind> funnels{Kind::Int32, Kind::Int32, Kind::Amount};
  plain(forms, "shf.l.wrap.b32", funnels,
        [](const u64* s, Integer) { return funnel(s, s[2] % 32, true); });
  plain(forms, "shf.r.wrap.b32", funnels,
        [](const u64* s, Integer) { return funnel(s, s[2] % 32, false); });
  plain(forms, "shf.l.clamp.b32", funnels,
        [](const u64* s, Integer) { return funnel(s, std::min<u64>(s[2], 32), true); });
  plain(forms, "shf.r.clamp.b32", funnels,
        [](const u64* s, Integer) { return funnel(s, std::min<u64>(s[2], 32), false); });
}

u64 maskOf(u64 position, u64 length) {
  u64 result = 0;
  for (u64 i = position; i < position + length && i < 32; ++i) result |= u64{1} << i;
  return result;
}

/// A position or length of bfe and bfi. The H200 takes the lower 8 bits for 32-bit types and all 32
/// bits for 64-bit types.
u64 fieldAmount(u64 value, Integer type) { return type.bits == 64 ? value : value & 255; }

void fields(Forms& forms) {
  plain(forms, "bfe.(u32|u64|s32|s64)", {kSame, Kind::Amount, Kind::Amount},
        [](const u64* s, Integer type) {
          const u64 position = fieldAmount(s[1], type), length = fieldAmount(s[2], type);
          const bool fill = type.negative && length != 0 &&
                            bitOf(s[0], std::min<u64>(position + length, type.bits) - 1);
          u64 result = 0;
          for (u64 i = 0; i < type.bits; ++i) {
            const bool inside = i < length && position + i < type.bits;
            result |= (inside ? bitOf(s[0], position + i) : u64{fill}) << i;
          }
          return result;
        });
  plain(forms, "bfi.(b32|b64)", {kSame, kSame, Kind::Amount, Kind::Amount},
        [](const u64* s, Integer type) {
          const u64 position = fieldAmount(s[2], type), length = fieldAmount(s[3], type);
          u64 result = s[1];
          for (u64 i = 0; i < length && position + i < type.bits; ++i) {
            const u64 at = u64{1} << (position + i);
            result = bitOf(s[0], i) ? result | at : result & ~at;
          }
          return result;
        });
  plain(forms, "bmsk.clamp.b32", {Kind::Amount, Kind::Amount},
        [](const u64* s, Integer) { return maskOf(s[0], s[1]); });
  plain(forms, "bmsk.wrap.b32", {Kind::Amount, Kind::Amount},
        [](const u64* s, Integer) { return maskOf(s[0] % 32, s[1] % 32); });
  plain(forms, "szext.(clamp|wrap).(u32|s32)", {Kind::Int32, Kind::Amount}, nullptr);
  for (Form& form : forms) {
    if (!form.name.starts_with("szext")) continue;
    const Words words(form.name);
    const bool clamp = words.has("clamp"), negative = words.has("s32");
    form.reference = [=](const u64* s, u64* d) {
      const auto bits = static_cast<unsigned>(clamp ? std::min<u64>(cut(s[1], 32), 32) : s[1] % 32);
      d[0] = bits == 0 ? 0 : cut(static_cast<u128>(numberIn(s[0], {bits, negative})), 32);
    };
  }
}

/// The highest bit that differs from the sign; -1 if there is none.
int highest(u64 value, Integer type) {
  if (type.negative && bitOf(value, type.bits - 1)) value = cut(~value, type.bits);
  int found = -1;
  for (unsigned i = 0; i < type.bits; ++i) found = bitOf(value, i) ? static_cast<int>(i) : found;
  return found;
}

void counts(Forms& forms) {
  for (const char* pattern : {"(popc|clz).(b32|b64)", "bfind(|.shiftamt).(u32|u64|s32|s64)"}) {
    for (const std::string& name : expand(pattern)) {
      const Words words(name);
      const Integer type = integerType(words.last());
      const bool shift = words.has("shiftamt"), population = words.opcode() == "popc",
                 zeros = words.opcode() == "clz";
      const auto reference = [=](const u64* s, u64* d) {
        const u64 value = cut(s[0], type.bits);
        const int top = highest(value, type), last = static_cast<int>(type.bits) - 1;
        int result = zeros || (shift && top >= 0) ? last - top : top;
        if (population) {
          result = 0;
          for (unsigned i = 0; i < type.bits; ++i) result += static_cast<int>(bitOf(value, i));
        }
        d[0] = static_cast<std::uint32_t>(result);
      };
      forms.push_back({name, {Kind::Int32}, {kindOf(type)}, {}, reference, {}, {}});
    }
  }
  const auto nth = [](const u64* s, u64* d) {
    const auto offset = static_cast<std::int32_t>(s[2]);
    long long left = offset == 0 ? 1 : offset < 0 ? -static_cast<long long>(offset) : offset;
    const int step = offset < 0 ? -1 : 1, base = static_cast<int>(s[1] % 32);
    d[0] = 0xffffffff;
    for (int at = base; at >= 0 && at < 32; at += step) {
      if (bitOf(s[0], static_cast<u64>(at)) && --left == 0) d[0] = static_cast<u64>(at);
      if (offset == 0) break;
    }
    if (offset == std::numeric_limits<std::int32_t>::min())
      d[0] = 0;  // H200, driver 580.159, 2026-11-23
  };
  forms.push_back({"fns.b32",
                   {Kind::Int32},
                   {Kind::Int32, Kind::Amount, Kind::Amount},
                   "and.b32 %t0, %s1, 31; fns.b32 %d0, %s0, %t0, %s2;",
                   nth,
                   {},
                   {}});
}

/// Which byte of b:a comes to place `place` for the selector `n`.
unsigned permutedFrom(const std::string& mode, unsigned n, unsigned place) {
  if (mode == "f4e") return n + place;
  if (mode == "b4e") return (n + 8 - place) % 8;
  if (mode == "rc8") return n;
  if (mode == "ecl") return std::max(n, place);
  if (mode == "ecr") return std::min(n, place);
  return n % 2 * 2 + place % 2;  // rc16
}

void permutations(Forms& forms) {
  for (const std::string& name : expand("prmt.b32(|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16)")) {
    const std::string mode = Words(name).last();
    const auto reference = [=](const u64* s, u64* d) {
      const u64 bytes = cut(s[0], 32) | s[1] << 32;
      d[0] = 0;
      for (unsigned i = 0; i < 4; ++i) {
        const auto nibble = static_cast<unsigned>(s[2] >> (4 * i)) & 15;
        const unsigned from =
            mode == "b32" ? nibble & 7 : permutedFrom(mode, static_cast<unsigned>(s[2] & 3), i);
        u64 byte = (bytes >> (8 * from)) & 255;
        if (mode == "b32" && (nibble & 8)) byte = byte & 128 ? 255 : 0;
        d[0] |= byte << (8 * i);
      }
    };
    forms.push_back(
        {name, {Kind::Int32}, {Kind::Int32, Kind::Int32, Kind::Int32}, {}, reference, {}, {}});
  }
}

u64 looked(const u64* s, unsigned table) {
  u64 result = 0;
  for (unsigned i = 0; i < 32; ++i)
    result |= u64{(table >> (bitOf(s[0], i) << 2 | bitOf(s[1], i) << 1 | bitOf(s[2], i))) & 1} << i;
  return result;
}

void lookups(Forms& forms) {
  for (unsigned table = 0; table < 256; ++table) {
    const std::string body = "lop3.b32 %d0, %s0, %s1, %s2, " + std::to_string(table) + ";";
    forms.push_back({"lop3.b32",
                     {Kind::Int32},
                     {Kind::Int32, Kind::Int32, Kind::Int32},
                     body,
                     [=](const u64* s, u64* d) { d[0] = looked(s, table); },
                     {},
                     "table " + std::to_string(table)});
  }
  for (const unsigned table : {0x01u, 0x80u, 0x96u}) {
    for (const std::string& name : expand("lop3.(or|and).b32")) {
      const bool both = name == "lop3.and.b32";
      for (const bool negated : {false, true}) {
        const std::string body = name + " %d0|%d1, %s0, %s1, %s2, " + std::to_string(table) +
                                 (negated ? ", !%s3;" : ", %s3;");
        const auto reference = [=](const u64* s, u64* d) {
          d[0] = looked(s, table);
          const bool set = d[0] != 0, other = bool(s[3] & 1) != negated;
          d[1] = both ? set && other : set || other;
        };
        forms.push_back({name,
                         {Kind::Int32, Kind::Pred},
                         {Kind::Int32, Kind::Int32, Kind::Int32, Kind::Pred},
                         body,
                         reference,
                         {},
                         "table " + std::to_string(table) + (negated ? ", negated" : "")});
      }
    }
  }
}

void packs(Forms& forms) {
  const std::vector<Kind> halves(4, Kind::Int16);
  const auto of16 = [](const u64* s, u64* d) {
    d[0] = 0;
    for (unsigned i = 0; i < 4; ++i) d[0] |= cut(s[i], 16) << (16 * i);
  };
  const auto of32 = [](const u64* s, u64* d) { d[0] = cut(s[0], 32) | s[1] << 32; };
  const auto two16 = [](const u64* s, u64* d) { d[0] = cut(s[0], 16) | cut(s[1], 16) << 16; };
  forms.push_back({"mov.b64",
                   {Kind::Int64},
                   halves,
                   "mov.b64 %d0, {%s0, %s1, %s2, %s3};",
                   of16,
                   {},
                   "from four"});
  forms.push_back({"mov.b64",
                   {Kind::Int64},
                   {Kind::Int32, Kind::Int32},
                   "mov.b64 %d0, {%s0, %s1};",
                   of32,
                   {},
                   "from two"});
  forms.push_back({"mov.b32",
                   {Kind::Int32},
                   {Kind::Int16, Kind::Int16},
                   "mov.b32 %d0, {%s0, %s1};",
                   two16,
                   {},
                   "from two"});
  const auto parts = [](unsigned bits) {
    return [=](const u64* s, u64* d) {
      for (unsigned i = 0; i < 2; ++i) d[i] = cut(s[0] >> (bits * i), bits);
    };
  };
  forms.push_back({"mov.b64",
                   {Kind::Int32, Kind::Int32},
                   {Kind::Int64},
                   "mov.b64 {%d0, %d1}, %s0;",
                   parts(32),
                   {},
                   "to two"});
  forms.push_back({"mov.b32",
                   {Kind::Int16, Kind::Int16},
                   {Kind::Int32},
                   "mov.b32 {%d0, %d1}, %s0;",
                   parts(16),
                   {},
                   "to two"});
  const auto ends = [](const u64* s, u64* d) {
    d[0] = cut(s[0] >> 16, 16);
    d[1] = cut(s[0] >> 48, 16);
  };
  forms.push_back({"mov.b64",
                   {Kind::Int16, Kind::Int16},
                   {Kind::Int64},
                   "mov.b64 {%h0, %d0, %h1, %d1}, %s0;",
                   ends,
                   {},
                   "to four"});
}

}  // namespace

void bitForms(Forms& forms) {
  logic(forms);
  shifts(forms);
  fields(forms);
  counts(forms);
  permutations(forms);
  lookups(forms);
  packs(forms);
}

}  // namespace instructions
