// ld, st, atom, red, cvta, isspacep, cp.async, alloca, fences.
#include <algorithm>
#include <bit>
#include <utility>

#include "native/simulator/ptx/machine/call.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/mbarrier.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

Space Lowerer::addressOperand(Operation& op, const Instruction& instruction, const Operand& whole,
                              Space space) {
  if (whole.kind != Operand::Kind::Address || whole.elements.size() != 1)
    malformed(instruction, "expected an address in brackets");
  const Operand& base = whole.elements[0];
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
  if (base.kind == Operand::Kind::Local) {
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
  if (form.type == Type::None || bytesOf(form.type) > 8 ||
      (vector ? value.elements.size() : 1) != lanes)
    unsupported(instruction);
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
                                            : Type::B64;
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
  access(instruction, modifiers, false);
}

void Lowerer::atomic(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Op> kNames[] = {
      {"add", Op::AtomAdd},    {"and", Op::AtomAnd}, {"or", Op::AtomOr},
      {"xor", Op::AtomXor},    {"min", Op::AtomMin}, {"max", Op::AtomMax},
      {"inc", Op::AtomInc},    {"dec", Op::AtomDec}, {"exch", Op::AtomExchange},
      {"cas", Op::AtomCompare}};
  Access checked{.kind = Access::Kind::Atomic, .strong = true};
  checked.release = modifiers.takeAny({"release", "acq_rel"});
  checked.narrow = modifiers.take("cta");
  modifiers.takeMemoryHints();
  const bool unflushed = modifiers.take("noftz");
  Form form{.op = Op::ActiveMask};
  form.noReturn = modifiers.opcode() == "red";
  form.space = modifiers.takeSpace();
  for (const auto& [name, op] : kNames) {
    if (form.op == Op::ActiveMask && modifiers.take(name)) form.op = op;
  }
  form.type = modifiers.takeType();
  require(legalAtomic(form, unflushed), instruction);
  Operation op;
  guard(op, instruction);
  const unsigned first = form.noReturn ? 0 : 1;
  const Space space = addressOperand(op, instruction, operand(instruction, first), form.space);
  if (space == Space::Local || space == Space::Param) unsupported(instruction);
  use(op, 1, source(instruction, operand(instruction, first + 1), form.type));
  const bool compares = form.op == Op::AtomCompare;
  if (compares) use(op, 2, source(instruction, operand(instruction, first + 2), form.type));
  if (instruction.operands.size() != first + (compares ? 3 : 2)) unsupported(instruction);
  if (!form.noReturn) define(op, 0, destination(instruction, operand(instruction, 0), form.type));
  op.target = static_cast<std::uint32_t>(code_.operations.size());
  op.run = laneKernel(form);
  if (!op.run) unsupported(instruction);
  checked.space = space;
  checked.bytes = bytesOf(form.type);
  emitAccess(op, checked);
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
  const Space space = modifiers.takeSpace();
  Operation op = begin(instruction, Form{.op = Op::IsSpace});
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

void Lowerer::copyAsync(const Instruction& instruction, Modifiers& modifiers) {
  if (!modifiers.take("async")) unsupported(instruction);
  if (modifiers.takeAny({"commit_group", "wait_group", "wait_all"}))
    return;  // it has happened already
  if (modifiers.take("mbarrier")) {
    const bool counted = !modifiers.take("noinc");
    modifiers.takeAny({"arrive", "b64"});
    modifiers.takeSpace();
    // Without .noinc the arrival is expected in addition to the others. The copies are done, so it
    // leaves the count as it was.
    return counted ? emit(begin(instruction, nothing)) : memoryBarrierArrive(instruction);
  }
  modifiers.takeMemoryHints();
  modifiers.take("L2::cache_hint");
  if (!modifiers.takeAny({"shared", "shared::cta"}) || !modifiers.take("global"))
    unsupported(instruction);
  Operation op = begin(instruction, Form{.op = Op::CopyAsync});
  Operation from;
  addressOperand(op, instruction, operand(instruction, 0), Space::Shared);
  addressOperand(from, instruction, operand(instruction, 1), Space::Global);
  if (!(from.flags & Operation::kWideAddress))
    malformed(instruction, "the source's address has 64 bits");
  use(op, 0, from.slot[Operation::kAddress]);
  op.target = static_cast<std::uint32_t>(static_cast<std::int32_t>(from.immediate));
  const std::uint64_t bytes = operand(instruction, 2).bits;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    malformed(instruction, "cp.async copies 4, 8 or 16 bytes");
  op.width = static_cast<std::uint8_t>(bytes);
  if (instruction.operands.size() > 3) {
    if (operand(instruction, 3).kind == Operand::Kind::Register &&
        registers_[operand(instruction, 3).index] == Type::Pred)
      unsupported(instruction);
    use(op, 1, source(instruction, operand(instruction, 3), Type::U32));
  }
  emitAccess(op, {.kind = Access::Kind::Copy, .space = Space::Shared, .bytes = op.width});
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

void Lowerer::memoryBarrierArrive(const Instruction& instruction) {
  Operation op = begin(instruction, mbarrierArrive);
  addressOperand(op, instruction, operand(instruction, 0), Space::Shared);
  emit(op);
}

void Lowerer::memoryBarrierObject(const Instruction& instruction, Modifiers& modifiers) {
  modifiers.takeMemoryHints();
  const bool parity = modifiers.take("parity"), noComplete = modifiers.take("noComplete");
  const Space space = modifiers.takeSpace();
  modifiers.take("b64");
  Handler handler = nullptr;
  if (modifiers.take("init")) handler = mbarrierInit;
  if (modifiers.take("inval")) handler = mbarrierInvalidate;
  if (modifiers.take("arrive")) handler = mbarrierArrive;
  if (modifiers.takeAny({"test_wait", "try_wait"})) handler = mbarrierTest;
  Operation op = begin(instruction, handler);
  op.detail = space == Space::Shared;
  const bool hasResult = handler == mbarrierArrive || handler == mbarrierTest;
  const std::size_t at = hasResult ? 1 : 0;
  addressOperand(op, instruction, operand(instruction, at), space);
  if (instruction.operands.size() > at + 1) {
    const bool state = handler == mbarrierTest && !parity;
    use(op, 1, source(instruction, operand(instruction, at + 1), state ? Type::B64 : Type::U32));
  }
  op.width = parity;
  if (noComplete && handler != mbarrierArrive) unsupported(instruction);
  if (handler == mbarrierArrive)
    define(op, 0, destination(instruction, operand(instruction, 0), Type::B64));
  if (handler == mbarrierTest)
    define(op, 0, destination(instruction, operand(instruction, 0), Type::Pred));
  emit(op);
}

void Lowerer::ignored(const Instruction& instruction, Modifiers& modifiers) {
  modifiers = Modifiers(instruction.text.substr(0, instruction.text.find('.')));
}

void Lowerer::fence(const Instruction& instruction, Modifiers& modifiers) {
  ignored(instruction, modifiers);
  emit(begin(instruction, ptx::fence));
}

}  // namespace simulator::ptx
