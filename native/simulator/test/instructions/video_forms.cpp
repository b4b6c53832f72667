// vadd4 and its like: two or four small numbers in each register. vadd and vsub: one number.
#include <algorithm>

#include "native/simulator/test/instructions/integers.h"

namespace instructions {
namespace {

i128 combined(const std::string& what, i128 a, i128 b) {
  if (what == "vadd") return a + b;
  if (what == "vsub") return a - b;
  if (what == "vavrg") return (a + b + (a + b >= 0)) >> 1;
  if (what == "vabsdiff") return a < b ? b - a : a - b;
  return what == "vmin" ? std::min(a, b) : std::max(a, b);
}

bool compared(const std::string& how, i128 a, i128 b) {
  if (how == "eq") return a == b;
  if (how == "ne") return a != b;
  if (how == "lt") return a < b;
  if (how == "le") return a <= b;
  return how == "gt" ? a > b : a >= b;
}

void add(Forms& forms, const std::string& name) {
  const Words words(name);
  const std::string opcode = words.opcode().substr(0, words.opcode().size() - 1);
  const bool sets = opcode == "vset", saturates = words.has("sat"), accumulates = words.has("add");
  const unsigned count = words.opcode().back() == '4' ? 4 : 2, bits = 32 / count;
  const Integer a{bits, words[sets ? 1 : 2] == "s32"}, b{bits, words[sets ? 2 : 3] == "s32"},
      result{bits, !sets && words[1] == "s32"};
  const std::string compare = sets ? words[3] : "";
  const auto reference = [=](const u64* s, u64* d) {
    i128 total = static_cast<i128>(cut(s[2], 32));
    u64 packed = 0;
    for (unsigned i = 0; i < count; ++i) {
      const i128 x = numberIn(s[0] >> (bits * i), a), y = numberIn(s[1] >> (bits * i), b);
      i128 value = sets ? i128{compared(compare, x, y)} : combined(opcode, x, y);
      if (saturates) value = clampTo(value, result);
      total += value;
      packed |= cut(static_cast<u128>(value), bits) << (bits * i);
    }
    d[0] = accumulates ? cut(static_cast<u128>(total), 32) : packed;
  };
  const Kind kind = count == 4 ? Kind::Quad8 : Kind::Pair16;
  forms.push_back({name, {Kind::Int32}, {kind, kind, Kind::Int32}, {}, reference, {}, {}});
  forms.back().guardWorks = name != "vadd4.u32.u32.u32.add" && name != "vsub4.u32.u32.u32.add";
}

void addOfOne(Forms& forms, const std::string& name) {
  const Words words(name);
  const bool subtracts = words.opcode() == "vsub", accumulates = words.has("add");
  const auto reference = [=](const u64* s, u64* d) {
    const u64 value = subtracts ? s[0] - s[1] : s[0] + s[1];
    d[0] = cut(static_cast<u128>(value + (accumulates ? s[2] : 0)), 32);
  };
  std::vector<Kind> sources(accumulates ? 3 : 2, Kind::Int32);
  forms.push_back({name, {Kind::Int32}, sources, {}, reference, {}, {}});
}

}  // namespace

void videoForms(Forms& forms) {
  for (const char* pattern :
       {"(vadd|vsub|vavrg|vabsdiff|vmin|vmax)(2|4).(u32|s32).(u32|s32).(u32|s32)(|.sat|.add)",
        "vset(2|4).(u32|s32).(u32|s32).(eq|ne|lt|le|gt|ge)(|.add)"}) {
    for (const std::string& name : expand(pattern)) add(forms, name);
  }
  for (const std::string& name : expand("(vadd|vsub).(u32|s32).(u32|s32).(u32|s32)(|.add)"))
    addOfOne(forms, name);
}

}  // namespace instructions
