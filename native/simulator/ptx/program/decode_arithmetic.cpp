// add, sub, mul, mad, fma, div, min, max, approximations.
#include <utility>

#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

/// An mxcsr with all exceptions masked that rounds so, and flushes subnormals if asked.
std::uint32_t environmentFor(Rounding rounding, bool flush) {
  constexpr std::uint32_t kMasked = 0x1f80, kFlush = 0x8040;
  const std::uint32_t direction = rounding == Rounding::Down ? 1 : rounding == Rounding::Up ? 2 : rounding == Rounding::Zero ? 3 : 0;
  return kMasked | direction << 13 | (flush ? kFlush : 0);
}

bool needsEnvironment(const Form& form) {
  return form.flush || form.rounding == Rounding::Down || form.rounding == Rounding::Up || form.rounding == Rounding::Zero;
}

}  // namespace

void Lowerer::floating(const Instruction& instruction, Modifiers& modifiers, Form form, unsigned sources) {
  form.saturate |= modifiers.take("sat");
  form.flush |= modifiers.take("ftz");
  if (form.rounding == Rounding::None) form.rounding = modifiers.takeRounding();
  const bool wide = form.type == Type::F32 || form.type == Type::F64;
  if (!wide && form.rounding != Rounding::None && form.rounding != Rounding::Nearest) unsupported(instruction);
  Operation op = begin(instruction, form);
  if (wide && needsEnvironment(form)) {
    op.inner = std::exchange(op.run, withRounding);
    op.detail = environmentFor(form.rounding, form.flush);
  }
  for (unsigned i = 1; i <= sources; ++i) use(op, i, source(instruction, operand(instruction, i), form.type));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::add(const Instruction& instruction, Modifiers& modifiers) {
  const bool subtract = modifiers.opcode().starts_with("sub"), carryIn = modifiers.opcode().ends_with("c");
  Form form{.op = subtract ? Op::Sub : Op::Add, .type = modifiers.takeType()};
  if (isFloat(form.type)) return floating(instruction, modifiers, form, 2);
  form.carryIn = carryIn;
  form.carryOut = modifiers.take("cc");
  if (form.carryIn || form.carryOut) form.op = subtract ? Op::SubCarry : Op::AddCarry;
  if (modifiers.take("sat")) form.op = subtract ? Op::SubSaturated : Op::AddSaturated;
  regular(instruction, form, 2);
}

void Lowerer::multiply(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::Mul, .type = modifiers.takeType()};
  if (isFloat(form.type)) return floating(instruction, modifiers, form, 2);
  if (!modifiers.take("wide")) {
    form.op = modifiers.take("hi") ? Op::MulHigh : Op::MulLow;
    modifiers.take("lo");
    return regular(instruction, form, 2);
  }
  form.op = Op::MulWide;
  Operation op = begin(instruction, form);
  for (unsigned i = 1; i <= 2; ++i) use(op, i, source(instruction, operand(instruction, i), form.type));
  define(op, 0, destination(instruction, operand(instruction, 0), bytesOf(form.type) == 2 ? Type::B32 : Type::B64));
  emit(op);
}

void Lowerer::multiplyAdd(const Instruction& instruction, Modifiers& modifiers) {
  const bool carryIn = modifiers.opcode() == "madc";
  Form form{.op = Op::Fma, .type = modifiers.takeType()};
  if (isFloat(form.type)) return floating(instruction, modifiers, form, 3);
  if (modifiers.take("wide")) {
    form.op = Op::MadWide;
    const Type twice = bytesOf(form.type) == 2 ? Type::B32 : Type::B64;
    Operation op = begin(instruction, form);
    for (unsigned i = 1; i <= 2; ++i) use(op, i, source(instruction, operand(instruction, i), form.type));
    use(op, 3, source(instruction, operand(instruction, 3), twice));
    define(op, 0, destination(instruction, operand(instruction, 0), twice));
    return emit(op);
  }
  const bool high = modifiers.take("hi");
  modifiers.take("lo");
  form.carryIn = carryIn;
  form.carryOut = modifiers.take("cc");
  if (form.carryIn || form.carryOut) {
    form.op = high ? Op::MadHighCarry : Op::MadLowCarry;
  } else {
    form.op = high ? (modifiers.take("sat") ? Op::MadHighSaturated : Op::MadHigh) : Op::MadLow;
  }
  regular(instruction, form, 3);
}

void Lowerer::multiply24(const Instruction& instruction, Modifiers& modifiers) {
  const bool accumulates = modifiers.opcode() == "mad24", high = modifiers.take("hi");
  modifiers.take("lo");
  const Op op = accumulates ? (high ? Op::Mad24High : Op::Mad24Low) : high ? Op::Mul24High : Op::Mul24Low;
  regular(instruction, {.op = op, .type = modifiers.takeType()}, accumulates ? 3 : 2);
}

void Lowerer::fma(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::Fma, .type = modifiers.takeType()};
  form.relu = modifiers.take("relu");
  floating(instruction, modifiers, form, 3);
}

void Lowerer::divide(const Instruction& instruction, Modifiers& modifiers) {
  const bool remainder = modifiers.opcode() == "rem";
  Form form{.op = remainder ? Op::Rem : Op::Div, .type = modifiers.takeType()};
  if (!isFloat(form.type)) return regular(instruction, form, 2);
  modifiers.takeAny({"approx", "full"});
  floating(instruction, modifiers, form, 2);
}

void Lowerer::minimum(const Instruction& instruction, Modifiers& modifiers) {
  const bool least = modifiers.opcode() == "min";
  Form form{.op = least ? Op::Min : Op::Max, .type = modifiers.takeType()};
  if (isFloat(form.type)) {
    form.nan = modifiers.take("NaN");
    form.flush = modifiers.take("ftz");
    if (instruction.operands.size() != 3) unsupported(instruction);
  } else if (modifiers.take("relu")) {
    form.op = least ? Op::MinRelu : Op::MaxRelu;
  }
  regular(instruction, form, 2);
}

void Lowerer::unary(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.opcode() == "neg" ? Op::Neg : Op::Abs, .type = modifiers.takeType()};
  form.flush = modifiers.take("ftz");
  regular(instruction, form, 1);
}

void Lowerer::approximate(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {{"rcp", Op::Rcp}, {"sqrt", Op::Sqrt}, {"rsqrt", Op::Rsqrt},
                                                               {"sin", Op::Sin}, {"cos", Op::Cos},   {"lg2", Op::Lg2},
                                                               {"ex2", Op::Ex2}, {"tanh", Op::Tanh}};
  Form form{.type = modifiers.takeType()};
  for (const auto& [name, op] : kNames) {
    if (name == modifiers.opcode()) form.op = op;
  }
  const bool rough = modifiers.take("approx");
  if (rough && (form.type == Type::F64 || form.op == Op::Rsqrt || form.op >= Op::Sin)) {
    form.flush = modifiers.take("ftz");
    return regular(instruction, form, 1);  // no rounding to speak of
  }
  floating(instruction, modifiers, form, 1);
}

void Lowerer::absoluteDifference(const Instruction& instruction, Modifiers& modifiers) {
  regular(instruction, {.op = Op::Sad, .type = modifiers.takeType()}, 3);
}

void Lowerer::dotProduct(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.opcode() == "dp4a" ? Op::Dp4a : Op::Dp2a};
  const bool high = modifiers.take("hi");
  modifiers.take("lo");
  form.type = modifiers.takeType();
  form.secondSigned = isSigned(modifiers.takeType());
  Operation op = begin(instruction, form);
  op.detail = high;
  for (unsigned i = 1; i <= 3; ++i) use(op, i, source(instruction, operand(instruction, i), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

/// vadd4.u32.s32.u32.sat d, a, b, c and its like: two or four small numbers in each register.
void Lowerer::video(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"vadd", Op::VideoAdd}, {"vsub", Op::VideoSub}, {"vavrg", Op::VideoAverage}, {"vabsdiff", Op::VideoDifference},
      {"vmin", Op::VideoMin}, {"vmax", Op::VideoMax}, {"vset", Op::VideoSet}};
  const std::string_view opcode = modifiers.opcode();
  Form form;
  for (const auto& [name, op] : kNames) {
    if (opcode.substr(0, opcode.size() - 1) == name) form.op = op;
  }
  Operation op;
  op.detail = modifiers.take("sat") ? 8 : 0;
  op.detail |= modifiers.take("add") ? 16 : 0;
  if (form.op == Op::VideoSet) {
    op.detail |= 4;  // the result has no type: it is 0 or 1
    form.type = Type::U32;
  } else {
    form.type = modifiers.takeType();
    op.detail |= isSigned(form.type) ? 4 : 0;
  }
  op.detail |= isSigned(modifiers.takeType()) ? 1 : 0;
  op.detail |= isSigned(modifiers.takeType()) ? 2 : 0;
  if (form.op == Op::VideoSet && !modifiers.takeCompare(form.compare, Type::U32)) unsupported(instruction);
  op.target = static_cast<std::uint32_t>(form.compare);
  op.width = opcode.back() == '4' ? 4 : 2;
  op.run = laneKernel(form);
  guard(op, instruction);
  for (unsigned i = 1; i <= 3; ++i) use(op, i, source(instruction, operand(instruction, i), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

void Lowerer::copysign(const Instruction& instruction, Modifiers& modifiers) {
  regular(instruction, {.op = Op::Copysign, .type = modifiers.takeType()}, 2);
}

void Lowerer::testp(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::string_view kClasses[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  const Type type = modifiers.takeType();
  Operation op = begin(instruction, Form{.op = Op::Testp, .type = type});
  for (std::uint32_t i = 0; i < std::size(kClasses); ++i) {
    if (modifiers.take(kClasses[i])) op.detail = i;
  }
  use(op, 1, source(instruction, operand(instruction, 1), type));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::Pred));
  emit(op);
}

}  // namespace simulator::ptx
