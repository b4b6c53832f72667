// The order of a basic block's instructions that keeps few values alive.
#pragma once

#include <cstdint>
#include <vector>

#include "native/simulator/ptx/program/value_parts.h"

namespace simulator::ptx {

/// The parts that are live at a point of a block while it is walked from its end to its start.
class LiveParts {
 public:
  explicit LiveParts(std::size_t parts) : live_(parts) {}
  bool has(Part part) const { return live_[part]; }
  std::uint32_t count() const { return count_; }
  void begin(Part part) {
    if (live_[part]) return;
    live_[part] = true;
    touched_.push_back(part);
    ++count_;
  }
  void end(Part part) {
    count_ -= live_[part] ? 1 : 0;
    live_[part] = false;
  }
  /// Walks across one instruction.
  void step(const Function& function, const RegisterEffects& effects, const ValueParts& values,
            std::uint32_t instruction) {
    const bool writesAlways = function.instructions[instruction].guard.predicate == Guard::kNone;
    if (writesAlways) values.each(effects.writes(instruction), [&](Part part) { end(part); });
    values.each(effects.reads(instruction), [&](Part part) { begin(part); });
  }
  void clear() {
    for (const Part part : touched_) end(part);
    touched_.clear();
  }

 private:
  std::vector<bool> live_;
  std::vector<Part> touched_;
  std::uint32_t count_ = 0;
};

/// The most parts alive at once when the block's instructions are ordered greedily from its end;
/// `live` holds those alive behind it.
std::uint32_t scheduledPressure(const Function& function, const BasicBlock& block,
                                const RegisterEffects& effects, const ValueParts& values,
                                LiveParts& live);

}  // namespace simulator::ptx
