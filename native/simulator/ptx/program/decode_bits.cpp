// Logic, shifts, fields, counts, permutation.
#include <utility>

#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

void Lowerer::logic(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"and", Op::And}, {"or", Op::Or}, {"xor", Op::Xor}, {"not", Op::Not}, {"cnot", Op::Cnot}};
  Form form{.type = modifiers.takeType()};
  for (const auto& [name, op] : kNames) {
    if (name == modifiers.opcode()) form.op = op;
  }
  require(isBits(form.type) || (form.type == Type::Pred && form.op != Op::Cnot), instruction);
  regular(instruction, form, form.op == Op::Not || form.op == Op::Cnot ? 1 : 2);
}

void Lowerer::shift(const Instruction& instruction, Modifiers& modifiers) {
  const Form form{.op = modifiers.opcode() == "shl" ? Op::ShiftLeft : Op::ShiftRight,
                  .type = modifiers.takeType()};
  require(isBits(form.type) || (form.op == Op::ShiftRight && isWhole(form.type)), instruction);
  Operation op = begin(instruction, form);
  use(op, 1, source(instruction, operand(instruction, 1), form.type));
  use(op, 2, source(instruction, operand(instruction, 2), Type::U32));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::funnelShift(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.take("l") ? Op::FunnelLeft : Op::FunnelRight,
            .type = modifiers.takeType()};
  require(form.type == Type::B32 && (form.op == Op::FunnelLeft || modifiers.take("r")),
          instruction);
  form.saturate = modifiers.take("clamp");
  require(form.saturate || modifiers.take("wrap"), instruction);
  regular(instruction, form, 3);
}

void Lowerer::count(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"popc", Op::Popc}, {"clz", Op::Clz}, {"bfind", Op::Bfind}, {"brev", Op::Brev}};
  Form form{.type = modifiers.takeType()};
  for (const auto& [name, op] : kNames) {
    if (name == modifiers.opcode()) form.op = op;
  }
  const bool large = bytesOf(form.type) >= 4;
  require(large && (form.op == Op::Bfind ? isWhole(form.type) : isBits(form.type)), instruction);
  if (form.op == Op::Bfind && modifiers.take("shiftamt")) form.op = Op::BfindShift;
  Operation op = begin(instruction, form);
  use(op, 1, source(instruction, operand(instruction, 1), form.type));
  define(op, 0,
         destination(instruction, operand(instruction, 0),
                     form.op == Op::Brev ? form.type : Type::U32));
  emit(op);
}

void Lowerer::field(const Instruction& instruction, Modifiers& modifiers) {
  const bool insert = modifiers.opcode() == "bfi";
  const Form form{.op = insert ? Op::Bfi : Op::Bfe, .type = modifiers.takeType()};
  require(bytesOf(form.type) >= 4 && (insert ? isBits(form.type) : isWhole(form.type)),
          instruction);
  Operation op = begin(instruction, form);
  const unsigned values = insert ? 2 : 1;
  for (unsigned i = 1; i <= values; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.type));
  for (unsigned i = values + 1; i <= values + 2; ++i)
    use(op, i, source(instruction, operand(instruction, i), Type::U32));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::mask(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.opcode() == "bmsk" ? Op::Bmsk : Op::Szext,
            .type = modifiers.takeType()};
  require(form.op == Op::Bmsk ? form.type == Type::B32 : isWord(form.type), instruction);
  form.saturate = modifiers.take("clamp");
  require(form.saturate || modifiers.take("wrap"), instruction);
  regular(instruction, form, 2);
}

void Lowerer::permute(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
  const Type type = modifiers.takeType();
  require(type == Type::B32, instruction);
  Operation op = begin(instruction, Form{.op = Op::Permute, .type = type});
  for (std::uint32_t i = 0; i < std::size(kModes); ++i) {
    if (modifiers.take(kModes[i])) op.detail = i + 1;
  }
  for (unsigned i = 1; i <= 3; ++i) use(op, i, source(instruction, operand(instruction, i), type));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::lop3(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  const Boolean boolean = modifiers.takeBoolean();
  const Operand& result = operand(instruction, 0);
  const bool pair = result.kind == Operand::Kind::Pair;
  require(type == Type::B32 &&
              (pair ? boolean == Boolean::And || boolean == Boolean::Or : boolean == Boolean::None),
          instruction);
  Operation op = begin(instruction, Form{.op = pair ? Op::Lop3Predicate : Op::Lop3, .type = type});
  for (unsigned i = 1; i <= 3; ++i) use(op, i, source(instruction, operand(instruction, i), type));
  op.detail = static_cast<std::uint32_t>(operand(instruction, 4).bits & 0xff);
  if (pair) {
    op.width = static_cast<std::uint8_t>(boolean);
    predicateSource(op, 6, instruction, operand(instruction, 5));
    define(op, Operation::kSecondResult, destination(instruction, result.elements[1], Type::Pred));
  }
  define(op, 0, destination(instruction, pair ? result.elements[0] : result, type));
  emit(op);
}

void Lowerer::fns(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  require(type == Type::B32, instruction);
  regular(instruction, {.op = Op::Fns, .type = type}, 3);
}

}  // namespace simulator::ptx
