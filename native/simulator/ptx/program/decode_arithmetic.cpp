// add, sub, mul, mad, fma, div, min, max, approximations.
#include <utility>

#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

std::uint32_t environmentFor(Rounding rounding, bool flush) {
  constexpr std::uint32_t kMasked = 0x1f80, kFlush = 0x8040;
  const std::uint32_t direction = rounding == Rounding::Down   ? 1
                                  : rounding == Rounding::Up   ? 2
                                  : rounding == Rounding::Zero ? 3
                                                               : 0;
  return kMasked | direction << 13 | (flush ? kFlush : 0);
}

namespace {

bool needsEnvironment(const Form& form) {
  return form.flush || form.rounding == Rounding::Down || form.rounding == Rounding::Up ||
         form.rounding == Rounding::Zero;
}

}  // namespace

void Lowerer::floating(const Instruction& instruction, Modifiers& modifiers, Form form,
                       unsigned sources) {
  form.saturate |= modifiers.take("sat");
  form.flush |= modifiers.take("ftz");
  if (form.rounding == Rounding::None) form.rounding = modifiers.takeRounding();
  const bool wide = isWide(form.type), directed = isDirection(form.rounding);
  require(wide || isHalf(form.type) || isBrain(form.type), instruction);
  require(form.rounding == Rounding::None || (wide ? directed : form.rounding == Rounding::Nearest),
          instruction);
  require((!form.flush && !form.saturate) || form.type == Type::F32 || isHalf(form.type),
          instruction);
  Operation op = begin(instruction, form);
  if (wide && needsEnvironment(form)) {
    op.inner = std::exchange(op.run, withRounding);
    op.detail = environmentFor(form.rounding, form.flush);
  }
  for (unsigned i = 1; i <= sources; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.type));
  define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  emit(op);
}

void Lowerer::add(const Instruction& instruction, Modifiers& modifiers) {
  const bool subtract = modifiers.opcode().starts_with("sub"),
             carryIn = modifiers.opcode().ends_with("c");
  Form form{.op = subtract ? Op::Sub : Op::Add, .type = modifiers.takeType()};
  if (isFloat(form.type) && !carryIn) return floating(instruction, modifiers, form, 2);
  form.carryIn = carryIn;
  form.carryOut = modifiers.take("cc");
  const bool carries = form.carryIn || form.carryOut,
             pairs = form.type == Type::U16x2 || form.type == Type::S16x2;
  require(isWhole(form.type) || (pairs && !subtract && !carries), instruction);
  if (carries) form.op = subtract ? Op::SubCarry : Op::AddCarry;
  if (!carries && form.type == Type::S32 && modifiers.take("sat"))
    form.op = subtract ? Op::SubSaturated : Op::AddSaturated;
  regular(instruction, form, 2);
}

void Lowerer::multiply(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::Mul, .type = modifiers.takeType()};
  if (isFloat(form.type)) return floating(instruction, modifiers, form, 2);
  require(isWhole(form.type), instruction);
  if (!modifiers.take("wide")) {
    form.op = modifiers.take("hi") ? Op::MulHigh : Op::MulLow;
    require(form.op == Op::MulHigh || modifiers.take("lo"), instruction);
    return regular(instruction, form, 2);
  }
  require(bytesOf(form.type) <= 4, instruction);
  form.op = Op::MulWide;
  Operation op = begin(instruction, form);
  for (unsigned i = 1; i <= 2; ++i)
    use(op, i, source(instruction, operand(instruction, i), form.type));
  define(op, 0,
         destination(instruction, operand(instruction, 0),
                     bytesOf(form.type) == 2 ? Type::B32 : Type::B64));
  emit(op);
}

void Lowerer::multiplyAdd(const Instruction& instruction, Modifiers& modifiers) {
  const bool carryIn = modifiers.opcode() == "madc";
  Form form{.op = Op::Fma, .type = modifiers.takeType()};
  if (isFloat(form.type)) {
    form.rounding = modifiers.takeRounding();
    require(!carryIn && isWide(form.type) && isDirection(form.rounding), instruction);
    return floating(instruction, modifiers, form, 3);
  }
  require(isWhole(form.type), instruction);
  if (!carryIn && modifiers.take("wide")) {
    require(bytesOf(form.type) <= 4, instruction);
    form.op = Op::MadWide;
    const Type twice = bytesOf(form.type) == 2 ? Type::B32 : Type::B64;
    Operation op = begin(instruction, form);
    for (unsigned i = 1; i <= 2; ++i)
      use(op, i, source(instruction, operand(instruction, i), form.type));
    use(op, 3, source(instruction, operand(instruction, 3), twice));
    define(op, 0, destination(instruction, operand(instruction, 0), twice));
    return emit(op);
  }
  const bool high = modifiers.take("hi");
  require(high || modifiers.take("lo"), instruction);
  form.carryIn = carryIn;
  form.carryOut = modifiers.take("cc");
  if (form.carryIn || form.carryOut) {
    form.op = high ? Op::MadHighCarry : Op::MadLowCarry;
  } else {
    const bool saturates = high && form.type == Type::S32 && modifiers.take("sat");
    form.op = saturates ? Op::MadHighSaturated : high ? Op::MadHigh : Op::MadLow;
  }
  regular(instruction, form, 3);
}

void Lowerer::multiply24(const Instruction& instruction, Modifiers& modifiers) {
  const bool accumulates = modifiers.opcode() == "mad24", high = modifiers.take("hi");
  require(high || modifiers.take("lo"), instruction);
  const Type type = modifiers.takeType();
  require(isWord(type), instruction);
  const bool saturates = accumulates && high && type == Type::S32 && modifiers.take("sat");
  const Op sum = saturates ? Op::Mad24HighSaturated : high ? Op::Mad24High : Op::Mad24Low;
  const Op op = accumulates ? sum : high ? Op::Mul24High : Op::Mul24Low;
  regular(instruction, {.op = op, .type = type}, accumulates ? 3 : 2);
}

void Lowerer::fma(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = Op::Fma, .type = modifiers.takeType()};
  form.rounding = modifiers.takeRounding();
  require(form.rounding != Rounding::None, instruction);
  form.saturate = modifiers.take("sat");
  form.relu = !isWide(form.type) && !form.saturate && modifiers.take("relu");
  floating(instruction, modifiers, form, 3);
}

void Lowerer::divide(const Instruction& instruction, Modifiers& modifiers) {
  const bool remainder = modifiers.opcode() == "rem";
  Form form{.op = remainder ? Op::Rem : Op::Div, .type = modifiers.takeType()};
  if (!isFloat(form.type) || remainder) {
    require(isWhole(form.type), instruction);
    return regular(instruction, form, 2);
  }
  form.rounding = modifiers.takeRounding();
  if (form.rounding == Rounding::None) {
    const bool rough = modifiers.take("approx");
    require(form.type == Type::F32 && (rough || modifiers.take("full")), instruction);
    if (rough) form.op = Op::DivApprox;
  }
  require(isWide(form.type) && !modifiers.hasAny({"sat"}), instruction);
  floating(instruction, modifiers, form, 2);
}

void Lowerer::minimum(const Instruction& instruction, Modifiers& modifiers) {
  const bool least = modifiers.opcode() == "min";
  Form form{.op = least ? Op::Min : Op::Max, .type = modifiers.takeType()};
  if (isFloat(form.type)) {
    require(form.type != Type::TF32, instruction);
    form.nan = form.type != Type::F64 && modifiers.take("NaN");
    form.flush = (form.type == Type::F32 || isHalf(form.type)) && modifiers.take("ftz");
    form.xorSign = form.type != Type::F64 && modifiers.take("xorsign");
    if (form.xorSign != modifiers.take("abs")) unsupported(instruction);
    if (instruction.operands.size() != 3) unsupported(instruction);
  } else {
    require(isWhole(form.type) || form.type == Type::U16x2 || form.type == Type::S16x2,
            instruction);
    const bool relu =
        (form.type == Type::S32 || form.type == Type::S16x2) && modifiers.take("relu");
    if (relu) form.op = least ? Op::MinRelu : Op::MaxRelu;
  }
  regular(instruction, form, 2);
}

void Lowerer::unary(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.opcode() == "neg" ? Op::Neg : Op::Abs, .type = modifiers.takeType()};
  require(isFloat(form.type) ? form.type != Type::TF32 : isWhole(form.type) && isSigned(form.type),
          instruction);
  form.flush = (form.type == Type::F32 || isHalf(form.type)) && modifiers.take("ftz");
  regular(instruction, form, 1);
}

void Lowerer::approximate(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"rcp", Op::Rcp}, {"sqrt", Op::Sqrt}, {"rsqrt", Op::Rsqrt}, {"sin", Op::Sin},
      {"cos", Op::Cos}, {"lg2", Op::Lg2},   {"ex2", Op::Ex2},     {"tanh", Op::Tanh}};
  Form form{.type = modifiers.takeType()};
  for (const auto& [name, op] : kNames) {
    if (name == modifiers.opcode()) form.op = op;
  }
  const bool rounds = form.op == Op::Rcp || form.op == Op::Sqrt;
  require(!modifiers.hasAny({"sat"}), instruction);
  if (modifiers.take("approx")) {
    form.flush = modifiers.take("ftz");
    const bool small = form.op == Op::Ex2 || form.op == Op::Tanh;
    if (form.type == Type::F64) {
      require(form.op == Op::Rsqrt || (form.op == Op::Rcp && form.flush), instruction);
    } else if (form.type == Type::F32) {
      require(form.op != Op::Tanh || !form.flush, instruction);
    } else {
      require(small && (isHalf(form.type) || isBrain(form.type)) &&
                  form.flush == (form.op == Op::Ex2 && isBrain(form.type)),
              instruction);
    }
    if (rounds && form.type == Type::F32) return floating(instruction, modifiers, form, 1);
    return regular(instruction, form, 1);  // no rounding to speak of
  }
  form.rounding = modifiers.takeRounding();
  require(rounds && isWide(form.type) && isDirection(form.rounding), instruction);
  floating(instruction, modifiers, form, 1);
}

void Lowerer::absoluteDifference(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  require(isWhole(type), instruction);
  regular(instruction, {.op = Op::Sad, .type = type}, 3);
}

void Lowerer::dotProduct(const Instruction& instruction, Modifiers& modifiers) {
  Form form{.op = modifiers.opcode() == "dp4a" ? Op::Dp4a : Op::Dp2a};
  const bool high = form.op == Op::Dp2a && modifiers.take("hi");
  require(form.op == Op::Dp4a || high || modifiers.take("lo"), instruction);
  form.type = modifiers.takeType();
  const Type second = modifiers.takeType();
  require(isWord(form.type) && isWord(second), instruction);
  form.secondSigned = isSigned(second);
  Operation op = begin(instruction, form);
  op.detail = high;
  for (unsigned i = 1; i <= 3; ++i)
    use(op, i, source(instruction, operand(instruction, i), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

/// vadd4.u32.s32.u32.sat d, a, b, c and its like: two or four small numbers in each register.
void Lowerer::video(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"vadd", Op::VideoAdd},      {"vsub", Op::VideoSub},
      {"vavrg", Op::VideoAverage}, {"vabsdiff", Op::VideoDifference},
      {"vmin", Op::VideoMin},      {"vmax", Op::VideoMax},
      {"vset", Op::VideoSet}};
  const std::string_view opcode = modifiers.opcode();
  Form form;
  for (const auto& [name, op] : kNames) {
    if (opcode.substr(0, opcode.size() - 1) == name) form.op = op;
  }
  Operation op;
  const bool saturates = form.op != Op::VideoSet && modifiers.take("sat"),
             accumulates = modifiers.take("add");
  require(!saturates || !accumulates, instruction);
  op.detail = saturates ? 8 : accumulates ? 16 : 0;
  if (form.op == Op::VideoSet) {
    op.detail |= 4;  // the result has no type: it is 0 or 1
    form.type = Type::U32;
  } else {
    form.type = modifiers.takeType();
    op.detail |= isSigned(form.type) ? 4 : 0;
  }
  const Type a = modifiers.takeType(), b = modifiers.takeType();
  require(isWord(form.type) && isWord(a) && isWord(b), instruction);
  op.detail |= (isSigned(a) ? 1 : 0) | (isSigned(b) ? 2 : 0);
  if (form.op == Op::VideoSet) {
    require(!modifiers.hasAny({"lo", "ls", "hi", "hs"}), instruction);
    require(modifiers.takeCompare(form.compare, Type::U32) && form.compare <= Compare::Ge,
            instruction);
  }
  op.target = static_cast<std::uint32_t>(form.compare);
  op.width = opcode.back() == '4' ? 4 : 2;
  op.run = laneKernel(form);
  guard(op, instruction);
  for (unsigned i = 1; i <= 3; ++i)
    use(op, i, source(instruction, operand(instruction, i), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

/// vadd.u32.u32.u32.add d, a, b, c and its like, of whole registers: modulo 2^32, so that signs do
/// not matter.
void Lowerer::videoOfOne(const Instruction& instruction, Modifiers& modifiers) {
  const Op first = modifiers.opcode() == "vadd" ? Op::Add : Op::Sub;
  for (int i = 0; i < 3; ++i) require(isWord(modifiers.takeType()), instruction);
  const bool accumulates = modifiers.take("add");
  const Slot result = destination(instruction, operand(instruction, 0), Type::U32);
  Operation op = begin(instruction, Form{.op = first, .type = Type::U32});
  for (unsigned i = 1; i <= 2; ++i)
    use(op, i, source(instruction, operand(instruction, i), Type::U32));
  define(op, 0, accumulates ? temporary(Type::U32) : result);
  const Slot sum = op.slot[0];
  emit(op);
  if (!accumulates) return;
  Operation last = begin(instruction, Form{.op = Op::Add, .type = Type::U32});
  use(last, 1, sum);
  use(last, 2, source(instruction, operand(instruction, 3), Type::U32));
  define(last, 0, result);
  emit(last);
}

void Lowerer::copysign(const Instruction& instruction, Modifiers& modifiers) {
  const Type type = modifiers.takeType();
  require(isWide(type), instruction);
  regular(instruction, {.op = Op::Copysign, .type = type}, 2);
}

void Lowerer::testp(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::string_view kClasses[] = {"finite",     "infinite", "number",
                                                  "notanumber", "normal",   "subnormal"};
  const Type type = modifiers.takeType();
  Operation op = begin(instruction, Form{.op = Op::Testp, .type = type});
  bool named = false;
  for (std::uint32_t i = 0; i < std::size(kClasses) && !named; ++i) {
    named = modifiers.take(kClasses[i]);
    op.detail = i;
  }
  require(named && isWide(type), instruction);
  use(op, 1, source(instruction, operand(instruction, 1), type));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::Pred));
  emit(op);
}

}  // namespace simulator::ptx
