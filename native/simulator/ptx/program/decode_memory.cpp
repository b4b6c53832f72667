// ld, st, cvta, isspacep, mapa, alloca, fences.
#include <algorithm>
#include <bit>
#include <utility>

#include "native/simulator/ptx/machine/call.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

Space Lowerer::addressOperand(Operation& op, const Instruction& instruction, const Operand& whole,
                              Space space) {
  if (!whole.element && (whole.kind != Operand::Kind::Address || whole.elements.size() != 1))
    malformed(instruction, "expected an address in brackets");
  const Operand& base = whole.element ? whole : whole.elements[0];
  if (base.kind == Operand::Kind::Integer) {
    op.immediate = static_cast<std::int64_t>(base.bits);
    return space;
  }
  if (base.kind == Operand::Kind::Register) {
    const unsigned bytes = bytesOf(registers_[base.index]);
    if (bytes != 4 && bytes != 8) malformed(instruction, "an address has 32 or 64 bits");
    use(op, Operation::kAddress, base.index);
    op.flags |= Operation::kHasAddress | (bytes == 8 ? Operation::kWideAddress : 0);
    op.immediate = base.offset;
    return space == Space::Param && !function_.entry ? Space::Local : space;
  }
  if (base.kind == Operand::Kind::Local && base.elements.empty()) {
    const Variable& variable = function_.variables[base.index];
    const bool kernelParameter =
        function_.entry && base.index < function_.returns + function_.parameters;
    if (variable.space == Space::Local || variable.space == Space::Param) {
      op.immediate = base.offset + localOffset_[base.index];
      if (kernelParameter) return Space::Param;
      op.flags |= Operation::kFrameLocal;
      return Space::Local;
    }
  }
  Operand bare = base;
  bare.offset = 0;
  use(op, Operation::kAddress, address(instruction, bare));
  op.flags |= Operation::kHasAddress | Operation::kWideAddress;
  op.immediate = base.offset;
  return space;
}

void Lowerer::emitAccess(Operation op, const Access& access) {
  const bool own =
      access.space == Space::Local || access.space == Space::Param || access.space == Space::Const;
  if (own ? checks().memory : checks().accesses()) {
    op.inner = std::exchange(op.run, checkedAccess);
    op.detail = access.packed();
  }
  emit(op);
}

void Lowerer::access(const Instruction& instruction, Modifiers& modifiers, bool loads) {
  const bool spinning = modifiers.takeAny({"volatile", "relaxed", "acquire"});
  Access checked{.kind = loads ? Access::Kind::Load : Access::Kind::Store};
  checked.release = modifiers.take("release");
  checked.strong = spinning || checked.release;
  checked.narrow = modifiers.take("cta");
  modifiers.takeMemoryHints();
  modifiers.takeAny({"L2::cache_hint"});
  Form form{.op = loads ? Op::Load : Op::Store};
  const unsigned lanes = modifiers.take("v2") ? 2 : modifiers.take("v4") ? 4 : 1;
  form.space = modifiers.takeSpace();
  form.type = modifiers.takeType();
  const Operand &value = operand(instruction, loads ? 0 : 1),
                &where = operand(instruction, loads ? 1 : 0);
  const bool vector = value.kind == Operand::Kind::Vector;
  const bool whole = form.type == Type::B128 && lanes == 1;
  const bool scalar = isOneOf(form.type, {Type::F32, Type::F64}) || isInteger(form.type);
  require((scalar || whole) && (vector ? value.elements.size() : 1) == lanes, instruction);
  Operation op;
  guard(op, instruction);
  form.space = addressOperand(op, instruction, where, form.space);
  const auto element = [&](unsigned i) -> const Operand& {
    return vector ? value.elements[i] : value;
  };
  // All elements are read as registers of one width; where they differ, the narrower ones cannot be
  // meant.
  for (unsigned i = 0; i < lanes; ++i)
    form.sourceBytes = i == 0 ? registerBytes(element(0), form.type) : form.sourceBytes;
  for (unsigned i = 0; i < lanes; ++i) {
    if (registerBytes(element(i), form.type) != form.sourceBytes &&
        element(i).kind == Operand::Kind::Register) {
      malformed(instruction, "the registers of a vector differ in size");
    }
    const Type as = form.sourceBytes == 2   ? Type::B16
                    : form.sourceBytes == 4 ? Type::B32
                    : form.sourceBytes == 8 ? Type::B64
                                            : Type::B128;
    const bool literal =
        element(i).kind == Operand::Kind::Float || element(i).kind == Operand::Kind::Float32;
    if (loads) {
      define(op, i, destination(instruction, element(i), as));
    } else {
      use(op, i, source(instruction, element(i), literal ? form.type : as));
    }
  }
  op.width = static_cast<std::uint8_t>(lanes);
  if (spinning) op.flags |= Operation::kSpinning;
  op.target = static_cast<std::uint32_t>(
      code_.operations.size());  // which of the remembered ranges it uses
  if (loads && form.space == Space::Param && !(op.flags & Operation::kHasAddress)) {
    form.op = Op::LoadParameter;
    const ParameterPlace last =
        code_.parameters.empty() ? ParameterPlace{0, 0} : code_.parameters.back();
    if (op.immediate < 0 || op.immediate + bytesOf(form.type) * lanes > last.offset + last.bytes)
      malformed(instruction, "there is no such parameter");
  } else if (!loads && form.space == Space::Param) {
    malformed(instruction, "the parameters of a kernel cannot be written");
  }
  op.run = laneKernel(form);
  if (!op.run) unsupported(instruction);
  if (form.op == Op::LoadParameter) return emit(op);
  checked.space = form.space;
  checked.bytes = bytesOf(form.type) * lanes;
  emitAccess(op, checked);
}

void Lowerer::load(const Instruction& instruction, Modifiers& modifiers) {
  access(instruction, modifiers, true);
}
void Lowerer::store(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.take("async")) return storeAsync(instruction, modifiers);
  access(instruction, modifiers, false);
}

void Lowerer::convertAddress(const Instruction& instruction, Modifiers& modifiers) {
  const bool back = modifiers.take("to");
  const Space space = modifiers.takeSpace();
  const Type type = modifiers.takeType();
  const Operand& from = operand(instruction, 1);
  const unsigned bytes = registerBytes(from, type);
  std::uint64_t window = 0;
  if (space == Space::Shared) window = kSharedWindow;
  if (space == Space::Local) window = kLocalWindow;
  if (space == Space::Param) window = function_.entry ? kParameterWindow : kLocalWindow;
  Form form{.op = back ? Op::FromGeneric : Op::ToGeneric, .type = type, .sourceBytes = bytes};
  if (window == 0) form.op = Op::Copy;  // device memory has one address everywhere
  Operation op = begin(instruction, form);
  op.immediate = static_cast<std::int64_t>(window);
  use(op, 1, source(instruction, from, type, true));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::isSpace(const Instruction& instruction, Modifiers& modifiers) {
  const bool cluster = modifiers.hasAny({"shared::cluster"});
  const Space space = modifiers.takeSpace();
  Operation op = begin(instruction, Form{.op = Op::IsSpace});
  op.width = space == Space::Shared && !cluster;
  const std::uint64_t window = space == Space::Shared  ? kSharedWindow
                               : space == Space::Local ? kLocalWindow
                               : space == Space::Param ? kParameterWindow
                                                       : 0;
  op.immediate = static_cast<std::int64_t>(window);
  if (space == Space::Const) op.immediate = -1;  // constants are device memory here
  use(op, 1, source(instruction, operand(instruction, 1), Type::U64));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::Pred));
  emit(op);
}

void Lowerer::mapRank(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeSpace();
  const Type type = modifiers.takeType();
  Operation op = begin(instruction, Form{.op = Op::MapRank, .type = type});
  use(op, 1, source(instruction, operand(instruction, 1), type));
  use(op, 2, source(instruction, operand(instruction, 2), Type::U32));
  define(op, 0, destination(instruction, operand(instruction, 0), type));
  emit(op);
}

void Lowerer::rankOf(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeSpace();
  const Type type = modifiers.takeType();
  require(type == Type::U32 || type == Type::U64, instruction);
  Operation op = begin(instruction, Form{.op = Op::GetRank, .type = type});
  use(op, 1, source(instruction, operand(instruction, 1), type));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::U32));
  emit(op);
}

void Lowerer::allocateLocal(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeType();
  if (modifiers.opcode() == "stackrestore") return;
  const bool saves = modifiers.opcode() == "stacksave";
  Operation op = begin(instruction, saves ? saveStack : ptx::allocateLocal);
  if (!saves) {
    use(op, 1, source(instruction, operand(instruction, 1), Type::U64));
    if (instruction.operands.size() > 2)
      op.detail = static_cast<std::uint32_t>(operand(instruction, 2).bits);
    code_.allocates = true;
  }
  define(op, 0, destination(instruction, operand(instruction, 0), Type::U64));
  emit(op);
}

void Lowerer::ignored(const Instruction& instruction, Modifiers& modifiers) {
  modifiers = Modifiers(instruction.text.substr(0, instruction.text.find('.')));
}

/// createpolicy: nothing looks at what it answers.
void Lowerer::cachePolicy(const Instruction& instruction, Modifiers& modifiers) {
  ignored(instruction, modifiers);
  Operation op = begin(instruction, Form{.op = Op::Copy, .type = Type::B64});
  use(op, 1, number(0, 8));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B64));
  emit(op);
}

void Lowerer::fence(const Instruction& instruction, Modifiers& modifiers) {
  ignored(instruction, modifiers);
  emit(begin(instruction, ptx::fence));
}

}  // namespace simulator::ptx
