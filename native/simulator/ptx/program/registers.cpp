// From register numbers to places in the frame.
#include <algorithm>

#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

constexpr std::uint32_t laneBytes(Type type) { return type == Type::Pred ? 4 : std::max(2u, bytesOf(type)) * kLanes; }

}  // namespace

void Lowerer::allocateRegisters() {
  std::vector<std::uint32_t> place(registers_.size());
  std::uint32_t end = 0;
  for (const bool predicates : {false, true}) {
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      if ((registers_[r] == Type::Pred) != predicates) continue;
      place[r] = end;
      end += laneBytes(registers_[r]);
    }
  }
  code_.frameBytes = end;
  for (Operation& op : code_.operations) {
    if (op.guard != Operation::kNoGuard) op.guard = place[op.guard];
    for (unsigned i = 0; i < Operation::kSlots; ++i) {
      if (!((op.uses | op.defines) & (1u << i))) continue;
      const Slot slot = op.slot[i];
      op.slot[i] = slot & kConstantBank ? kConstantBank | code_.constants[slot & ~kConstantBank].offset : place[slot];
    }
  }
}

}  // namespace simulator::ptx
