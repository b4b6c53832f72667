// Spellings that PTX does not have. The simulated GPU must refuse each: an assembler would, and a
// wrong modifier that is passed over computes something else. For every opcode all combinations of
// its words and types are made; what the table has is taken out.
#include <set>

#include "native/simulator/test/instructions/float_shared.h"

namespace instructions {
namespace {

const std::string kTypes =
    ".(b8|b16|b32|b64|u8|u16|u32|u64|s8|s16|s32|s64|f16|bf16|f16x2|bf16x2|f32|f64|tf32|u16x2|s16x2|"
    "pred)";
const std::string kNumbers = ".(u8|u32|u64|s16|s32|f16|bf16|f32|f64|tf32|b32)";

Kind kindOfWord(const std::string& word) {
  if (word == "pred") return Kind::Pred;
  if (word.ends_with("x2") || word == "tf32") return Kind::Int32;
  if (const Integer integer = integerType(word); integer.bits) return kindOf(integer);
  return word[0] == 'f' || word[0] == 'b' ? kindOf(formatNamed(word)) : Kind::Int32;
}

Kind twice(Kind kind) {
  return kind == Kind::Int16 ? Kind::Int32 : kind == Kind::Int32 ? Kind::Int64 : kind;
}

/// "plain": all operands have the type of the last word. Other shapes name what differs.
struct Shape {
  std::string pattern;
  unsigned sources;
  const char* shape = "plain";
};

std::vector<Shape> shapes() {
  const std::string rounding = "(|.rn|.rz|.rm|.rna)";
  return {
      {"(add|sub)" + rounding + "(|.ftz)(|.sat)(|.cc)" + kTypes, 2},
      {"(addc|subc)(|.cc)(|.sat)" + kTypes, 2},
      {"mul(|.lo|.hi|.rn|.rz)(|.ftz)(|.sat)(|.cc)" + kTypes, 2},
      {"mad(|.lo|.hi|.rn|.rz)(|.ftz)(|.sat)(|.cc)" + kTypes, 3},
      {"madc(|.lo|.hi)(|.cc)(|.sat)" + kTypes, 3},
      {"mul.wide(|.lo|.sat)" + kTypes, 2, "wide"},
      {"mad.wide(|.cc|.sat)" + kTypes, 3, "wide"},
      {"mul24(|.lo|.hi)(|.sat)" + kTypes, 2},
      {"mad24(|.lo|.hi)(|.sat)" + kTypes, 3},
      {"fma" + rounding + "(|.ftz)(|.sat)(|.relu)" + kTypes, 3},
      {"(div|rem)(|.approx|.full|.rn|.rz)(|.ftz)(|.sat)" + kTypes, 2},
      {"(min|max)(|.ftz)(|.NaN)(|.xorsign|.abs|.xorsign.abs)(|.relu)" + kTypes, 2},
      {"(abs|neg)(|.ftz)(|.sat)" + kTypes, 1},
      {"(rcp|sqrt|rsqrt|sin|cos|lg2|ex2|tanh)(|.approx|.rn|.rz)(|.ftz)(|.sat)" + kTypes, 1},
      {"sad(|.sat)" + kTypes, 3},
      {"copysign(|.ftz)" + kTypes, 2},
      {"testp(|.finite|.normal)" + kTypes, 1, "predicate"},
      {"(and|or|xor)(|.sat)" + kTypes, 2},
      {"(not|cnot)(|.sat)" + kTypes, 1},
      {"(shl|shr)(|.wrap)" + kTypes, 2, "amount"},
      {"shf(|.l|.r)(|.clamp|.wrap)" + kTypes, 3},
      {"(popc|clz|bfind|bfind.shiftamt|popc.shiftamt)" + kTypes, 1, "count"},
      {"brev" + kTypes, 1},
      {"bfe" + kTypes, 3, "amounts"},
      {"bfi" + kTypes, 4, "amounts"},
      {"(szext|bmsk)(|.clamp|.wrap)" + kTypes, 2},
      {"prmt" + kTypes + "(|.f4e|.rc16)", 3},
      {"fns" + kTypes, 3},
      {"dp4a" + kNumbers + kNumbers, 3, "words"},
      {"dp2a(|.lo|.hi)" + kNumbers + kNumbers, 3, "words"},
      {"(vadd4|vavrg2)" + kNumbers + ".(u32|s32|u16).(u32|s32|f32)(|.sat|.add|.sat.add)", 3,
       "words"},
      {"vset4(|.s32).(u32|s32|u16).(u32|s32|f32)(|.eq|.lo|.equ)(|.sat|.add)", 3, "words"},
      {"vset(2|4).u32.u32(.lo|.ls|.hi|.hs)(|.add)", 3, "words"},
      {"mov(|.sat)" + kTypes, 1},
      {"selp(|.ftz)" + kTypes, 2, "selected"},
      {"(atom|red).global(.add|.and|.min|.inc|.exch)(|.noftz)" + kTypes, 2, "atomic"},
      {"(atom|red).global.cas(|.noftz)" + kTypes, 3, "atomic"},
      {"slct(|.ftz)" + kTypes + ".(s32|f32|u32|s64|f64)", 2, "by sign"},
      {"setp.(eq|lt|lo|equ|num)(|.and)(|.ftz)(|.sat)" + kTypes, 2, "compared"},
      {"set.(eq|lo|equ)(|.and)(|.ftz)" + kTypes + kTypes, 2, "from"},
      {"cvt(|.rn|.rm|.rna|.rni|.rzi)(|.ftz|.sat|.ftz.sat)" + kTypes + kTypes, 1, "from"},
      {"cvt(|.rn|.rna|.rzi)(.relu|.satfinite|.relu.satfinite|.sat.relu|.sat.satfinite)" + kNumbers +
           kNumbers,
       1, "from"},
      {"cvt(|.rn|.rz|.rm|.rna|.rni)(|.ftz|.sat)(|.relu|.satfinite)" +
           std::string(".(f16x2|bf16x2)") + kNumbers,
       2, "from"},
  };
}

Form shaped(const std::string& name, unsigned sources, const std::string& shape) {
  const Words words(name);
  const bool typeIsLast = shape != "plain" || words.opcode() != "prmt" || words.last() == "b32";
  const Kind last = kindOfWord(typeIsLast ? words.last() : words.last(1));
  Form form{name, {last}, std::vector<Kind>(sources, last), {}, {}, {}, {}};
  if (shape == "wide") {
    form.results = {twice(last)};
    if (sources == 3) form.sources[2] = twice(last);
  }
  if (shape == "predicate" || shape == "compared") form.results = {Kind::Pred};
  if (shape == "compared" && words.has("and")) form.sources.push_back(Kind::Pred);
  if (shape == "amount") form.sources[1] = Kind::Amount;
  if (shape == "amounts") form.sources[sources - 1] = form.sources[sources - 2] = Kind::Amount;
  if (shape == "count" || shape == "words") form.results = {Kind::Int32};
  if (shape == "words") form.sources.assign(sources, Kind::Int32);
  if (shape == "selected") form.sources.push_back(Kind::Pred);
  if (shape == "by sign") {
    const Kind value = kindOfWord(words.last(1));
    form.results = {value};
    form.sources = {value, value, last};
  }
  if (shape == "atomic") {
    form.sources[0] = Kind::Int64;
    form.body = name + (words.opcode() == "atom" ? " %d0, [%s0], %s1" : " [%s0], %s1") +
                (sources == 3 ? ", %s1;" : ";");
  }
  if (shape == "from") {
    form.results = {kindOfWord(words.last(1))};
    if (words.opcode() == "set" && words.has("and")) form.sources.push_back(Kind::Pred);
  }
  return form;
}

}  // namespace

Forms refusedForms() {
  std::set<std::string> known;
  for (const Form& form : allForms()) known.insert(form.name);
  Forms refused;
  for (const Shape& shape : shapes()) {
    for (const std::string& name : expand(shape.pattern)) {
      if (!isUndocumented(name) && known.insert(name).second)
        refused.push_back(shaped(name, shape.sources, shape.shape));
    }
  }
  return refused;
}

}  // namespace instructions
