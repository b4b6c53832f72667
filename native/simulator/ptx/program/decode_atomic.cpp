// atom, red.
#include <utility>

#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

unsigned takeVector(Modifiers& modifiers) {
  return modifiers.take("v2") ? 2 : modifiers.take("v4") ? 4 : modifiers.take("v8") ? 8 : 1;
}

}  // namespace

/// Everything but the values; `operands` counts them.
Operation Lowerer::beginAtomic(const Instruction& instruction, Form& form, Access& checked) {
  Operation op;
  guard(op, instruction);
  form.space =
      addressOperand(op, instruction, operand(instruction, form.noReturn ? 0 : 1), form.space);
  require(form.space != Space::Local && form.space != Space::Param, instruction);
  checked.space = form.space;
  checked.bytes = bytesOf(form.type);
  return op;
}

void Lowerer::emitAtomic(const Instruction& instruction, Operation op, const Form& form,
                         const Access& checked) {
  op.target = static_cast<std::uint32_t>(code_.operations.size());
  op.run = laneKernel(form);
  require(op.run != nullptr, instruction);
  emitAccess(op, checked);
}

/// Each element of a vector is an atomic operation of its own.
void Lowerer::vectorAtomic(const Instruction& instruction, Form form, Access checked,
                           unsigned count) {
  const std::size_t first = form.noReturn ? 0 : 1;
  const std::vector<Operand>& values = operand(instruction, first + 1).elements;
  require(values.size() == count && legalAtomicVector(form, count), instruction);
  const Operation whole = beginAtomic(instruction, form, checked);
  std::vector<Slot> results;  // only then the registers, which may be those of values
  for (unsigned i = 0; i < count; ++i) {
    Operation op = whole;
    op.immediate += i * checked.bytes;
    use(op, 1, source(instruction, values[i], form.type));
    if (!form.noReturn) {
      results.push_back(temporary(form.type));
      define(op, 0, results.back());
    }
    emitAtomic(instruction, op, form, checked);
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Type type = checked.bytes == 2 ? Type::B16 : Type::B32;
    Operation op = begin(instruction, Form{.op = Op::Copy, .type = type});
    use(op, 1, results[i]);
    define(op, 0, destination(instruction, operand(instruction, 0).elements.at(i), type));
    emit(op);
  }
}

Op Lowerer::takeAtomicOperation(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"add", Op::AtomAdd},    {"and", Op::AtomAnd}, {"or", Op::AtomOr},
      {"xor", Op::AtomXor},    {"min", Op::AtomMin}, {"max", Op::AtomMax},
      {"inc", Op::AtomInc},    {"dec", Op::AtomDec}, {"exch", Op::AtomExchange},
      {"cas", Op::AtomCompare}};
  for (const auto& [name, op] : kNames) {
    if (modifiers.take(name)) return op;
  }
  return Op::ActiveMask;
}

void Lowerer::atomic(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.noReturn = modifiers.opcode() == "red"};
  const bool asynchronous = form.noReturn && modifiers.take("async");
  Access checked{.kind = Access::Kind::Atomic, .strong = true};
  checked.release = modifiers.takeAny({"release", "acq_rel"});
  checked.narrow = modifiers.take("cta");
  modifiers.takeMemoryHints();
  const bool hinted = modifiers.take("L2::cache_hint"), unflushed = modifiers.take("noftz");
  form.space = modifiers.takeSpace();
  form.op = takeAtomicOperation(modifiers);
  const unsigned count = takeVector(modifiers);
  form.type = modifiers.takeType();
  const bool narrow = isHalf(form.type) || isBrain(form.type);
  require(unflushed == narrow, instruction);
  const bool compares = form.op == Op::AtomCompare;
  const std::size_t first = form.noReturn ? 0 : 1,
                    operands = first + 2 + compares + hinted + asynchronous;
  require(instruction.operands.size() == operands, instruction);
  if (count > 1) return vectorAtomic(instruction, form, checked, count);
  require(legalAtomic(form, unflushed), instruction);
  Operation op = beginAtomic(instruction, form, checked);
  use(op, 1, source(instruction, operand(instruction, first + 1), form.type));
  if (compares) use(op, 2, source(instruction, operand(instruction, first + 2), form.type));
  if (!form.noReturn) define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emitAtomic(instruction, op, form, checked);
  if (!asynchronous) return;
  const bool known = modifiers.take("mbarrier::complete_tx::bytes");
  const bool word = bytesOf(form.type) == 4 && !isFloat(form.type);
  require(known && (word || (form.op == Op::AtomAdd && form.type == Type::U64)), instruction);
  completeTransactions(instruction, operand(instruction, 2), number(bytesOf(form.type), 4));
}

}  // namespace simulator::ptx
