// Operands: registers, numbers, addresses of symbols, special registers.
#include <algorithm>

#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/program/lowerer.h"
#include "native/simulator/ptx/syntax/parser.h"

namespace simulator::ptx {

void Lowerer::guard(Operation& op, const Instruction& instruction) const {
  op.line = instruction.line;
  op.guard = instruction.guard.predicate;
  if (instruction.guard.negated) op.flags |= Operation::kNegatedGuard;
}

Operation Lowerer::begin(const Instruction& instruction, Handler handler) {
  if (!handler) unsupported(instruction);
  Operation op;
  op.run = handler;
  guard(op, instruction);
  return op;
}

Operation Lowerer::begin(const Instruction& instruction, const Form& form) {
  return begin(instruction, laneKernel(form));
}

const Operand& Lowerer::operand(const Instruction& instruction, std::size_t index) const {
  if (index >= instruction.operands.size()) malformed(instruction, "an operand is missing");
  return instruction.operands[index];
}

Slot Lowerer::temporary(Type type) {
  registers_.push_back(type);
  return static_cast<Slot>(registers_.size() - 1);
}

Slot Lowerer::constant(Constant::Kind kind, std::uint32_t index, std::uint64_t bits,
                       unsigned bytes) {
  if (bytes && bytes < 8) bits &= (1ull << (8 * bytes)) - 1;
  const auto [found, added] = constants_.try_emplace(
      {kind, index, bits, bytes}, kConstantBank | static_cast<Slot>(code_.constants.size()));
  if (added) code_.constants.push_back({kind, static_cast<std::uint8_t>(bytes), index, 0, bits});
  return found->second;
}

void Lowerer::use(Operation& op, unsigned slot, Slot value) const {
  op.slot[slot] = value;
  op.uses |= static_cast<std::uint8_t>(1u << slot);
}

void Lowerer::define(Operation& op, unsigned slot, Slot value) const {
  op.slot[slot] = value;
  op.defines |= static_cast<std::uint8_t>(1u << slot);
}

unsigned Lowerer::registerBytes(const Operand& operand, Type type) const {
  const unsigned least = std::max(2u, bytesOf(type));
  return operand.kind == Operand::Kind::Register ? std::max(2u, bytesOf(registers_[operand.index]))
                                                 : least;
}

Slot Lowerer::sourceRegister(const Instruction& instruction, const Operand& operand, Type type,
                             bool mayBeWider) {
  const Type have = registers_[operand.index];
  const unsigned wanted = std::max(2u, bytesOf(type)), bytes = std::max(2u, bytesOf(have));
  const bool fits = type == Type::Pred || have == Type::Pred
                        ? type == have
                        : bytes == wanted || (mayBeWider && bytes > wanted);
  if (!fits)
    malformed(instruction, "register '" + std::string(operand.name) + "' has the wrong size");
  return operand.index;
}

Slot Lowerer::special(const Instruction& instruction, const Operand& operand, unsigned bytes) {
  if (operand.name.starts_with("%pm") || operand.name == "%current_graph_exec")
    return number(0, bytes);
  unsigned width = 0;
  const int which = specialNumber(operand.name, width);
  if (which < 0) malformed(instruction, "unknown register '" + std::string(operand.name) + "'");
  code_.usesReserved |= operand.name.starts_with("%reserved_smem");
  Operation op;
  op.run = readSpecial;
  op.line = instruction.line;
  op.immediate = which;
  op.width = static_cast<std::uint8_t>(width == 0 ? 0 : bytes);
  const Slot result = temporary(width == 0   ? Type::Pred
                                : bytes == 8 ? Type::B64
                                : bytes == 2 ? Type::B16
                                             : Type::B32);
  define(op, 0, result);
  emit(op);
  return result;
}

Slot Lowerer::frameAddress(const Instruction& instruction, std::uint64_t offset, unsigned bytes) {
  Operation op = begin(instruction, Form{.op = Op::LocalAddress});
  op.guard = Operation::kNoGuard;
  op.immediate = static_cast<std::int64_t>(offset);
  op.width = static_cast<std::uint8_t>(bytes);
  const Slot result = temporary(bytes == 4 ? Type::B32 : Type::B64);
  define(op, 0, result);
  emit(op);
  return result;
}

/// The 64-bit address of array[register].
Slot Lowerer::elementAddress(const Instruction& instruction, const Operand& array) {
  const Operand& index = array.elements[0];
  const unsigned bytes = registerBytes(index, Type::U32);
  if (bytes != 4 && bytes != 8) malformed(instruction, "the index of an array has 32 or 64 bits");
  Operand first = array;
  first.elements.clear();
  const Slot start = address(instruction, first);
  const Type narrow = registers_[index.index] == Type::S32 ? Type::S32 : Type::U32;
  Operation op = begin(instruction, bytes == 8 ? Form{.op = Op::MadLow, .type = Type::U64}
                                               : Form{.op = Op::MadWide, .type = narrow});
  op.guard = Operation::kNoGuard;
  use(op, 1, index.index);
  use(op, 2, number(array.bits, bytes));
  use(op, 3, start);
  define(op, 0, temporary(Type::B64));
  emit(op);
  return op.slot[0];
}

/// The 64-bit address of a variable or function, in its own state space.
Slot Lowerer::address(const Instruction& instruction, const Operand& operand) {
  if (!operand.elements.empty()) return elementAddress(instruction, operand);
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  Symbol symbol;
  if (operand.kind == Operand::Kind::Local) {
    const Variable& variable = function_.variables[operand.index];
    if (variable.space == Space::Local || variable.space == Space::Param) {
      const bool kernelParameter =
          function_.entry && operand.index < function_.returns + function_.parameters;
      if (kernelParameter) return number(localOffset_[operand.index] + offset, 8);
      return frameAddress(instruction, localOffset_[operand.index] + offset, 8);
    }
    symbol = bodySymbol_[operand.index];
  } else {
    symbol = program_.resolve(module_, operand.name);
  }
  switch (symbol.kind) {
    case Symbol::Kind::Variable: return constant(Constant::Kind::Variable, symbol.index, offset, 8);
    case Symbol::Kind::Shared: return constant(Constant::Kind::Shared, symbol.index, offset, 8);
    case Symbol::Kind::Function: return constant(Constant::Kind::Function, symbol.index, offset, 8);
    case Symbol::Kind::DynamicShared: {
      if (function_.entry) return constant(Constant::Kind::DynamicShared, 0, offset, 8);
      Operation op = begin(instruction, dynamicSharedAddress);  // depends on the kernel that calls
      op.guard = Operation::kNoGuard;
      op.immediate = operand.offset;
      define(op, 0, temporary(Type::B64));
      emit(op);
      return op.slot[0];
    }
    case Symbol::Kind::None: break;
  }
  throw Undefined(instruction.line, operand.name);
}

Slot Lowerer::source(const Instruction& instruction, const Operand& operand, Type type,
                     bool mayBeWider) {
  const unsigned bytes = type == Type::Pred ? 0 : std::max(2u, bytesOf(type));
  switch (operand.kind) {
    case Operand::Kind::Register: return sourceRegister(instruction, operand, type, mayBeWider);
    case Operand::Kind::Integer:
      // nvcc writes f64 immediates as 0d..., never as integers; an integer is taken as the bits.
      return number(operand.bits, bytes);
    case Operand::Kind::Float:
    case Operand::Kind::Float32:
      return number(literalBits(operand.kind, operand.bits, type), bytes);
    case Operand::Kind::Special: return special(instruction, operand, bytes);
    case Operand::Kind::Local:
    case Operand::Kind::Symbol: {
      const Slot wide = address(instruction, operand);
      if (bytes == 8) return wide;
      if (bytes != 4) malformed(instruction, "an address does not fit");
      Operation op =
          begin(instruction,
                Form{.op = Op::Convert, .type = Type::U32, .from = Type::U64, .sourceBytes = 8});
      op.guard = Operation::kNoGuard;
      op.width = 4;
      use(op, 1, wide);
      define(op, 0, temporary(Type::B32));
      emit(op);
      return op.slot[0];
    }
    default: malformed(instruction, "an operand has the wrong form");
  }
}

Slot Lowerer::destination(const Instruction& instruction, const Operand& operand, Type type,
                          bool mayBeWider) {
  if (operand.kind == Operand::Kind::Sink) return temporary(bytesOf(type) == 1 ? Type::B16 : type);
  if (operand.kind != Operand::Kind::Register)
    malformed(instruction, "the result must be a register");
  return sourceRegister(instruction, operand, type, mayBeWider);
}

void Lowerer::regular(const Instruction& instruction, const Form& form, unsigned sources) {
  Operation op = begin(instruction, form);
  for (unsigned i = 1; i <= sources; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.type));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::predicateSource(Operation& op, unsigned slot, const Instruction& instruction,
                              const Operand& operand) {
  use(op, slot, source(instruction, operand, Type::Pred));
  if (operand.negated) op.flags |= Operation::kNegatedSource;
}

}  // namespace simulator::ptx
