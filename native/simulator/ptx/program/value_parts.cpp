#include "native/simulator/ptx/program/value_parts.h"

#include <algorithm>
#include <string_view>

namespace simulator::ptx {
namespace {

using Register = std::uint32_t;

bool startsWith(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

/// Integer instructions that the uniform datapath executes when their sources are the same for all
/// threads of a warp.
bool runsUniformly(std::string_view text) {
  return startsWith(
      text, {"add.s", "add.u", "sub.s", "sub.u",  "mul.lo.", "mul.wide.", "mad.lo.", "mad.wide.",
             "shl.",  "shr.",  "and.b", "or.b",   "xor.b",   "not.b",     "neg.s",   "min.s",
             "min.u", "max.s", "max.u", "selp.b", "selp.u",  "selp.s"});
}

bool variesWithinWarp(std::string_view special) {
  return startsWith(special,
                    {"%tid", "%laneid", "%lanemask", "%clock", "%globaltimer", "%smid", "%warpid"});
}

std::uint32_t words(Type type) { return type == Type::Pred ? 0 : std::max(1u, bytesOf(type) / 4); }

}  // namespace

ValueParts::ValueParts(const Function& function, const ControlFlow& flow,
                       const RegisterEffects& effects)
    : function_(function),
      effects_(effects),
      definitions_(function.registers.size()),
      known_(function.registers.size()),
      uniform_(function.registers.size()),
      indexed_(function.registers.size()),
      parts_(function.registers.size()),
      removed_(function.instructions.size()) {
  for (const std::uint32_t block : flow.order) {
    for (std::uint32_t i = flow.blocks[block].begin; i < flow.blocks[block].end; ++i) {
      for (const Register r : effects.writes(i)) ++definitions_[r];
    }
  }
  for (const std::uint32_t block : flow.order) {
    for (std::uint32_t i = flow.blocks[block].begin; i < flow.blocks[block].end; ++i) define(i);
  }
  for (Register r = 0; r < parts_.size(); ++r) {
    if (!known_[r]) own(r);
  }
}

void ValueParts::own(Register r) {
  known_[r] = true;
  parts_[r].count = words(function_.registers[r]);
  for (std::uint32_t i = 0; i < parts_[r].count; ++i) parts_[r].part[i] = count_++;
}

bool ValueParts::copyable(const Operand& operand) const {
  return operand.kind == Operand::Kind::Register && single(operand.index) && known_[operand.index];
}

void ValueParts::define(std::uint32_t i) {
  const Instruction& instruction = function_.instructions[i];
  const bool plain = instruction.guard.predicate == Guard::kNone;
  if (plain && (isUniform(i) || isIndexed(instruction) || sharesParts(instruction)))
    removed_[i] = true;
  for (const Register r : effects_.writes(i)) {
    if (!known_[r]) own(r);
  }
}

bool ValueParts::uniformOperand(const Operand& operand) const {
  switch (operand.kind) {
    case Operand::Kind::Register: return uniform_[operand.index];
    case Operand::Kind::Special: return !variesWithinWarp(operand.name);
    case Operand::Kind::Integer:
    case Operand::Kind::Float:
    case Operand::Kind::Float32:
    case Operand::Kind::Local:
    case Operand::Kind::Symbol: return true;
    default: return false;
  }
}

/// Its result is the same for all threads of a warp, or cheaper to recompute than to keep.
bool ValueParts::isUniform(std::uint32_t i) {
  const Instruction& instruction = function_.instructions[i];
  const auto writes = effects_.writes(i);
  if (writes.size() != 1 || !single(writes[0]) || instruction.operands.size() < 2) return false;
  const Type type = function_.registers[writes[0]];
  const bool copy =
      startsWith(instruction.text, {"mov.", "cvta.", "cvt.u64.u32", "cvt.u32.u64", "cvt.s64.s32"});
  bool uniform = true;
  if (instruction.text.starts_with("ld.param")) {
    uniform = function_.entry && effects_.reads(i).empty();
  } else if (copy && instruction.operands[1].kind == Operand::Kind::Special) {
    uniform = true;  // read again where it is needed
  } else if (copy || runsUniformly(instruction.text)) {
    for (std::size_t k = 1; k < instruction.operands.size(); ++k)
      uniform &= uniformOperand(instruction.operands[k]);
  } else {
    return false;
  }
  if (!uniform) return false;
  const bool varies = instruction.operands[1].kind == Operand::Kind::Special &&
                      variesWithinWarp(instruction.operands[1].name);
  uniform_[writes[0]] = !varies && type != Type::Pred;
  known_[writes[0]] = true;
  return true;
}

/// An address that one instruction makes of a 32-bit index and a uniform base: the index is kept,
/// the address recomputed at each use.
bool ValueParts::isIndexed(const Instruction& instruction) {
  if (instruction.operands.size() < 2 || instruction.operands[0].kind != Operand::Kind::Register)
    return false;
  const Register to = instruction.operands[0].index;
  const bool widens = startsWith(instruction.text, {"mul.wide.", "cvt.s64.s32", "cvt.u64.u32"});
  if (!widens && !startsWith(instruction.text, {"add.s64", "add.u64", "shl.b64"})) return false;
  if (!single(to) || words(function_.registers[to]) != 2) return false;
  const Operand* index = nullptr;
  for (std::size_t k = 1; k < instruction.operands.size(); ++k) {
    const Operand& operand = instruction.operands[k];
    if (uniformOperand(operand)) continue;
    if (index != nullptr || !copyable(operand) || !(widens || indexed_[operand.index]))
      return false;
    index = &operand;
  }
  if (index == nullptr || parts_[index->index].count > 1) return false;
  share(to, index->index, 0, 1);
  indexed_[to] = true;
  return true;
}

bool ValueParts::sharesParts(const Instruction& instruction) {
  if (instruction.operands.size() != 2) return false;
  const Operand &to = instruction.operands[0], &from = instruction.operands[1];
  if (instruction.text.starts_with("mov.")) {
    if (to.kind == Operand::Kind::Vector) return unpacks(to, from);
    if (from.kind == Operand::Kind::Vector) return packs(to, from);
  } else if (!startsWith(instruction.text, {"cvta.", "cvt.u64.u32", "cvt.u32.u64", "cvt.s32.s64",
                                            "cvt.u32.s64", "cvt.s32.u64"})) {
    return false;
  }
  if (to.kind != Operand::Kind::Register || !single(to.index) || !copyable(from)) return false;
  share(to.index, from.index, 0, words(function_.registers[to.index]));
  return true;
}

/// `to` has `count` parts of `from`, or as many as there are, from part `first` on.
void ValueParts::share(Register to, Register from, std::uint32_t first, std::uint32_t count) {
  const Parts& source = parts_[from];
  Parts result;
  for (std::uint32_t k = first; k < source.count && result.count < count; ++k)
    result.part[result.count++] = source.part[k];
  parts_[to] = result;
  known_[to] = true;
}

bool ValueParts::unpacks(const Operand& to, const Operand& from) {
  if (!copyable(from)) return false;
  for (const Operand& element : to.elements) {
    if (element.kind == Operand::Kind::Register && !single(element.index)) return false;
  }
  const auto each = bytesOf(function_.registers[from.index]) /
                    static_cast<std::uint32_t>(std::max<std::size_t>(1, to.elements.size()));
  for (std::uint32_t k = 0; k < to.elements.size(); ++k) {
    if (to.elements[k].kind == Operand::Kind::Register)
      share(to.elements[k].index, from.index, k * each / 4, std::max(1u, each / 4));
  }
  return true;
}

bool ValueParts::packs(const Operand& to, const Operand& from) {
  if (to.kind != Operand::Kind::Register || !single(to.index)) return false;
  Parts result;
  for (const Operand& element : from.elements) {
    if (!copyable(element) || bytesOf(function_.registers[element.index]) < 4) return false;
    const Parts& source = parts_[element.index];
    for (std::uint32_t k = 0; k < source.count && result.count < result.part.size(); ++k)
      result.part[result.count++] = source.part[k];
  }
  parts_[to.index] = result;
  known_[to.index] = true;
  return true;
}

}  // namespace simulator::ptx
