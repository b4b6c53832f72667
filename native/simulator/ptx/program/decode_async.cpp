// cp.async, cp.reduce.async.bulk, st.async, mbarrier. Copies happen at once; what waits for them
// finds them done.
#include <string_view>
#include <utility>

#include "native/simulator/ptx/machine/bulk_copy.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/mbarrier.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {

/// The last operands of cp.async: bytes to take, or a predicate that says to take none.
void Lowerer::takenBytes(Operation& op, const Instruction& instruction, std::size_t operands) {
  if (operands <= 3) return;
  const Operand& taken = operand(instruction, 3);
  const bool ignores =
      taken.kind == Operand::Kind::Register && registers_[taken.index] == Type::Pred;
  if (!ignores) return use(op, 1, source(instruction, taken, Type::U32));
  Operation selection = begin(instruction, Form{.op = Op::Select, .type = Type::B32});
  use(selection, 1, number(0, 4));
  use(selection, 2, number(op.width, 4));
  predicateSource(selection, 3, instruction, taken);
  define(selection, 0, temporary(Type::B32));
  emit(selection);
  use(op, 1, selection.slot[0]);
}

Slot Lowerer::genericAddress(const Instruction& instruction, const Operand& where, Space space,
                             std::int64_t& offset) {
  Operation place;
  addressOperand(place, instruction, where, space);
  offset = place.immediate;
  const bool wide = place.flags & Operation::kWideAddress;
  require(place.flags & Operation::kHasAddress && (wide || space == Space::Shared), instruction);
  if (space == Space::Global) return place.slot[Operation::kAddress];
  Operation op = begin(instruction,
                       Form{.op = Op::ToGeneric, .type = Type::U64, .sourceBytes = wide ? 8u : 4u});
  op.immediate = static_cast<std::int64_t>(kSharedWindow);
  use(op, 1, place.slot[Operation::kAddress]);
  define(op, 0, temporary(Type::B64));
  emit(op);
  return op.slot[0];
}

void Lowerer::copyBulk(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.takeAny({"commit_group", "wait_group"})) {
    modifiers.take("read");
    return;
  }
  if (modifiers.take("prefetch")) {
    require(modifiers.take("L2") && modifiers.take("global"), instruction);
    modifiers.take("L2::cache_hint");
    return;
  }
  const bool signals = modifiers.take("mbarrier::complete_tx::bytes");
  require(signals || modifiers.take("bulk_group"), instruction);
  const bool global = modifiers.take("global"), other = modifiers.take("shared::cluster"),
             own = modifiers.take("shared::cta");
  // A copy that signals an mbarrier goes to shared memory, all others go to global memory.
  require(signals ? global + other + own == 2 : global && own && !other, instruction);
  transferBulk(instruction, modifiers, ptx::copyBulk, signals ? Space::Shared : Space::Global,
               signals && global ? Space::Global : Space::Shared, signals);
}

/// From the own block's shared memory: to global memory, or with a signal to that of the cluster.
void Lowerer::reduceBulk(const Instruction& instruction, Modifiers& modifiers) {
  const bool signals = modifiers.take("mbarrier::complete_tx::bytes");
  require(signals || modifiers.take("bulk_group"), instruction);
  require(modifiers.take(signals ? "shared::cluster" : "global") && modifiers.take("shared::cta"),
          instruction);
  Form form{.space = signals ? Space::Shared : Space::Global, .noReturn = true, .bulk = true};
  form.op = takeAtomicOperation(modifiers);
  const bool unflushed = modifiers.take("noftz");
  form.type = modifiers.takeType();
  require(legalBulkReduction(form, unflushed), instruction);
  transferBulk(instruction, modifiers, laneKernel(form), form.space, Space::Shared, signals);
}

void Lowerer::transferBulk(const Instruction& instruction, Modifiers& modifiers, Handler handler,
                           Space to, Space from, bool signals) {
  const std::size_t hinted = modifiers.take("L2::cache_hint");
  require(modifiers.empty() && instruction.operands.size() == 3 + signals + hinted, instruction);
  std::int64_t offset = 0, sourceOffset = 0;
  const Slot destination = genericAddress(instruction, operand(instruction, 0), to, offset),
             origin = genericAddress(instruction, operand(instruction, 1), from, sourceOffset),
             bytes = source(instruction, operand(instruction, 2), Type::U32);
  Operation op = begin(instruction, handler);
  use(op, Operation::kAddress, destination);
  op.flags |= Operation::kHasAddress | Operation::kWideAddress;
  op.immediate = offset;
  use(op, 0, origin);
  op.target = static_cast<std::uint32_t>(static_cast<std::int32_t>(sourceOffset));
  use(op, 1, bytes);
  emitAccess(op, {.kind = Access::Kind::Bulk,
                  .space = Space::Generic,
                  .bytes = 16,
                  .strong = handler != ptx::copyBulk});
  if (signals) completeTransactions(instruction, operand(instruction, 3), bytes);
}

void Lowerer::copyAsync(const Instruction& instruction, Modifiers& modifiers) {
  const bool reduces = modifiers.take("reduce");
  require(modifiers.take("async"), instruction);
  if (modifiers.take("bulk"))
    return reduces ? reduceBulk(instruction, modifiers) : copyBulk(instruction, modifiers);
  require(!reduces, instruction);
  if (modifiers.takeAny({"commit_group", "wait_group", "wait_all"})) return;
  if (modifiers.take("mbarrier")) {
    const bool counted = !modifiers.take("noinc");
    modifiers.takeAny({"arrive", "b64"});
    modifiers.takeSpace();
    // Without .noinc the arrival is expected in addition to the others. The copies are done, so it
    // leaves the count as it was.
    return counted ? emit(begin(instruction, nothing)) : memoryBarrierArrive(instruction);
  }
  modifiers.takeMemoryHints();
  const bool hinted = modifiers.take("L2::cache_hint");
  require(modifiers.takeAny({"shared", "shared::cta"}) && modifiers.take("global"), instruction);
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
  takenBytes(op, instruction, instruction.operands.size() - hinted);
  emitAccess(op, {.kind = Access::Kind::Copy, .space = Space::Shared, .bytes = op.width});
}

/// st.async: a store, after which its bytes have come.
void Lowerer::storeAsync(const Instruction& instruction, Modifiers& modifiers) {
  require(modifiers.take("mbarrier::complete_tx::bytes") && modifiers.hasAny({"shared::cluster"}) &&
              instruction.operands.size() == 3,
          instruction);
  Modifiers words = modifiers;
  const unsigned count = words.take("v4") ? 4 : words.take("v2") ? 2 : 1;
  const unsigned bytes = count * bytesOf(words.takeType());
  access(instruction, modifiers, false);
  completeTransactions(instruction, operand(instruction, 2), number(bytes, 4));
}

void Lowerer::completeTransactions(const Instruction& instruction, const Operand& barrier,
                                   Slot bytes) {
  Operation op = begin(instruction, mbarrierComplete);
  addressOperand(op, instruction, barrier, Space::Shared);
  use(op, 1, bytes);
  emit(op);
}

void Lowerer::memoryBarrierArrive(const Instruction& instruction) {
  Operation op = begin(instruction, mbarrierArrive);
  addressOperand(op, instruction, operand(instruction, 0), Space::Shared);
  emit(op);
}

void Lowerer::memoryBarrierArrival(const Instruction& instruction, Modifiers& modifiers,
                                   Operation op) {
  op.run = mbarrierArrive;
  modifiers.take("noComplete");
  const bool expects = modifiers.take("expect_tx");
  addressOperand(op, instruction, operand(instruction, 1), Space::Shared);
  if (instruction.operands.size() > 2)
    use(op, expects ? 2 : 1, source(instruction, operand(instruction, 2), Type::U32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B64));
  emit(op);
}

void Lowerer::memoryBarrierWait(const Instruction& instruction, Modifiers& modifiers,
                                Operation op) {
  op.run = mbarrierTest;
  op.width = modifiers.take("parity");
  addressOperand(op, instruction, operand(instruction, 1), Space::Shared);
  use(op, 1, source(instruction, operand(instruction, 2), op.width ? Type::U32 : Type::B64));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::Pred));
  emit(op);
}

void Lowerer::memoryBarrierObject(const Instruction& instruction, Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Handler> kPlain[] = {
      {"init", mbarrierInit},
      {"inval", mbarrierInvalidate},
      {"expect_tx", mbarrierExpect},
      {"complete_tx", mbarrierComplete}};
  modifiers.takeMemoryHints();
  modifiers.takeSpace();
  require(modifiers.take("b64"), instruction);
  Operation op = begin(instruction, nothing);
  op.width = modifiers.take("arrive_drop");
  if (op.width || modifiers.take("arrive")) return memoryBarrierArrival(instruction, modifiers, op);
  if (modifiers.takeAny({"test_wait", "try_wait"}))
    return memoryBarrierWait(instruction, modifiers, op);
  if (modifiers.take("pending_count")) {
    op.run = mbarrierPending;
    use(op, 1, source(instruction, operand(instruction, 1), Type::B64));
    define(op, 0, destination(instruction, operand(instruction, 0), Type::U32));
    return emit(op);
  }
  for (const auto& [name, handler] : kPlain) {
    if (modifiers.take(name)) op.run = handler;
  }
  require(op.run != nothing, instruction);
  addressOperand(op, instruction, operand(instruction, 0), Space::Shared);
  if (op.run != mbarrierInvalidate)
    use(op, 1, source(instruction, operand(instruction, 1), Type::U32));
  emit(op);
}

}  // namespace simulator::ptx
