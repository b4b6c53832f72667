// mov, cvt, setp, set, selp, slct.
#include <algorithm>
#include <utility>

#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

Type partOf(unsigned bytes) {
  return bytes == 8 ? Type::B64 : bytes == 4 ? Type::B32 : bytes == 2 ? Type::B16 : Type::None;
}

}  // namespace

void Lowerer::pack(const Instruction& instruction, Type type) {
  const std::vector<Operand>& parts = operand(instruction, 1).elements;
  const unsigned bytes = parts.empty() ? 0 : bytesOf(type) / static_cast<unsigned>(parts.size());
  const Type part = partOf(bytes);
  Operation op = begin(instruction, Form{.op = Op::Pack, .type = type, .from = part});
  for (unsigned i = 0; i < parts.size(); ++i) use(op, 1 + i, source(instruction, parts[i], part));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::unpack(const Instruction& instruction, Type type) {
  const std::vector<Operand>& parts = operand(instruction, 0).elements;
  const unsigned bytes = parts.empty() ? 0 : bytesOf(type) / static_cast<unsigned>(parts.size());
  const Type part = partOf(bytes);
  Operation op = begin(instruction, Form{.op = Op::Unpack, .type = type, .from = part});
  op.width = static_cast<std::uint8_t>(parts.size());
  use(op, 4, source(instruction, operand(instruction, 1), type));
  for (unsigned i = 0; i < parts.size(); ++i)
    define(op, i, destination(instruction, parts[i], part));
  emit(op);
}

void Lowerer::move(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  require(isPlain(type) || type == Type::Pred || type == Type::B128, instruction);
  if (operand(instruction, 0).kind == Operand::Kind::Vector) return unpack(instruction, type);
  if (operand(instruction, 1).kind == Operand::Kind::Vector) return pack(instruction, type);
  require(type != Type::B128, instruction);
  regular(instruction, {.op = Op::Copy, .type = type}, 1);
}

/// cvt.pack: two saturated numbers below the lower bits of a third.
void Lowerer::packConverted(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, int> kNames[] = {
      {"u16", 16}, {"s16", -16}, {"u8", 8}, {"s8", -8},
      {"u4", 4},   {"s4", -4},   {"u2", 2}, {"s2", -2}};
  const int bits = modifiers.takeFirst<int>(kNames, 0);
  const bool small = bits < 16 && bits > -16;
  require(
      bits != 0 && modifiers.take("sat") && modifiers.take("s32") && modifiers.take("b32") == small,
      instruction);
  Operation op = begin(instruction, Form{.op = Op::PackSaturated, .type = Type::B32});
  op.width = static_cast<std::uint8_t>(bits < 0 ? -bits : bits);
  op.detail = bits < 0;
  for (unsigned i = 1; i <= (small ? 3 : 2); ++i)
    use(op, i, source(instruction, operand(instruction, i), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

void Lowerer::convert(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.take("pack")) return packConverted(instruction, modifiers);
  Form form{.op = Op::Convert, .rounding = modifiers.takeRounding()};
  form.saturate = modifiers.take("sat");
  form.finite = modifiers.take("satfinite");
  form.flush = modifiers.take("ftz");
  form.relu = modifiers.take("relu");
  form.type = modifiers.takeType();
  form.from = modifiers.takeType();
  require(legalConversion(form), instruction);
  const bool small = isOneOf(form.type, {Type::E4M3x2, Type::E5M2x2}) ||
                     form.from == Type::E4M3x2 || form.from == Type::E5M2x2;
  const bool pairs = small || form.type == Type::F16x2 || form.type == Type::BF16x2;
  const bool pair = pairs && form.from == Type::F32;
  if (pairs) form.op = Op::ConvertPair;
  const Operand &to = operand(instruction, 0), &from = operand(instruction, 1);
  form.sourceBytes = registerBytes(from, form.from);
  Operation op = begin(instruction, form);
  op.width = static_cast<std::uint8_t>(registerBytes(to, form.type));
  op.target = form.sourceBytes;
  if (form.flush) op.flags |= Operation::kFlushes;
  if (form.saturate) op.flags |= Operation::kNegatedSource;
  const bool narrow =
      form.type == Type::F16 || form.type == Type::BF16 || form.type == Type::TF32 || pairs;
  if (!isFloat(form.from)) {
    op.detail = static_cast<std::uint32_t>(narrow ? static_cast<int>(form.rounding)
                                                  : static_cast<int>(form.from));
    op.immediate = static_cast<int>(form.from);
  } else if (narrow) {
    op.detail = static_cast<std::uint32_t>(form.rounding);
    op.immediate = (form.relu ? 1 : 0) | (form.finite ? 2 : 0);
  }
  const bool directed = form.rounding == Rounding::Zero || form.rounding == Rounding::Down ||
                        form.rounding == Rounding::Up;
  if (directed && (form.type == Type::F32 || form.type == Type::F64)) {
    op.inner = std::exchange(op.run, withRounding);
    op.detail = environmentFor(form.rounding, false);
  }
  use(op, 1, source(instruction, from, form.from, true));
  if (pair) use(op, 2, source(instruction, operand(instruction, 2), form.from));
  define(op, 0,
         destination(instruction, to, form.type == Type::TF32 ? Type::B32 : form.type, true));
  emit(op);
}

void Lowerer::takeComparison(const Instruction& instruction, Modifiers& modifiers, Form& form) {
  const bool unsignedWord = modifiers.hasAny({"lo", "ls", "hi", "hs"});
  require(modifiers.takeCompare(form.compare, form.from), instruction);
  require(legalComparison(form.compare, unsignedWord, form.from, form.flush), instruction);
}

void Lowerer::setPredicate(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::SetPredicate};
  form.boolean = modifiers.takeBoolean();
  form.flush = modifiers.take("ftz");
  form.from = modifiers.takeType();
  takeComparison(instruction, modifiers, form);
  const Operand& result = operand(instruction, 0);
  const bool pair = result.kind == Operand::Kind::Pair;
  Operation op = begin(instruction, form);
  op.width = static_cast<std::uint8_t>(form.boolean);
  for (unsigned i = 1; i <= 2; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.from));
  if (form.boolean != Boolean::None) predicateSource(op, 3, instruction, operand(instruction, 3));
  define(op, 0, destination(instruction, pair ? result.elements[0] : result, Type::Pred));
  if (pair)
    define(op, Operation::kSecondResult, destination(instruction, result.elements[1], Type::Pred));
  emit(op);
}

void Lowerer::setValue(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::SetValue};
  form.boolean = modifiers.takeBoolean();
  form.flush = modifiers.take("ftz");
  form.type = modifiers.takeType();
  form.from = modifiers.takeType();
  takeComparison(instruction, modifiers, form);
  require(legalSet(form), instruction);
  Operation op = begin(instruction, form);
  op.width = static_cast<std::uint8_t>(form.boolean);
  op.target = std::max(2u, bytesOf(form.type));
  switch (form.type) {
    case Type::F32: op.detail = 0x3f800000; break;
    case Type::F16:
    case Type::F16x2: op.detail = 0x3c00; break;
    case Type::BF16:
    case Type::BF16x2: op.detail = 0x3f80; break;
    default: op.detail = ~0u; break;
  }
  for (unsigned i = 1; i <= 2; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.from));
  if (form.boolean != Boolean::None) predicateSource(op, 3, instruction, operand(instruction, 3));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::select(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  require(isPlain(type), instruction);
  Operation op = begin(instruction, Form{.op = Op::Select, .type = type});
  for (unsigned i = 1; i <= 2; ++i) use(op, i, source(instruction, operand(instruction, i), type));
  predicateSource(op, 3, instruction, operand(instruction, 3));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::selectBySign(const Instruction& instruction, Modifiers& modifiers) {
  const bool flush = modifiers.take("ftz");
  const Type type = modifiers.takeType(), sign = modifiers.takeType();
  require(isPlain(type) && (sign == Type::F32 || (sign == Type::S32 && !flush)), instruction);
  Operation op =
      begin(instruction, Form{.op = Op::SelectBySign, .type = type, .from = sign, .flush = flush});
  for (unsigned i = 1; i <= 2; ++i) use(op, i, source(instruction, operand(instruction, i), type));
  use(op, 3, source(instruction, operand(instruction, 3), sign));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

}  // namespace simulator::ptx
