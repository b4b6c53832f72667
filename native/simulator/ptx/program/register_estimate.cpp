#include "native/simulator/ptx/program/register_estimate.h"

#include <algorithm>

#include "native/simulator/ptx/program/bit_set.h"
#include "native/simulator/ptx/program/block_schedule.h"

namespace simulator::ptx {
namespace {

/// Counts the parts that are live at once, from the end of each block to its start.
class Pressure {
 public:
  Pressure(const Function& function, const ControlFlow& flow, const RegisterEffects& effects,
           const ValueParts& values)
      : function_(function),
        flow_(flow),
        effects_(effects),
        values_(values),
        live_(values.count()),
        number_(values.count(), kLocal) {}

  std::uint32_t most() {
    numberExposed();
    solve();
    std::uint32_t most = 0;
    for (std::size_t p = 0; p < flow_.order.size(); ++p) most = std::max(most, mostIn(p));
    return most;
  }

 private:
  static constexpr std::uint32_t kLocal = ~0u;
  /// With that many, a block can have 1,024 threads. The assembler reorders instructions to need no
  /// more than it must.
  static constexpr std::uint32_t kOrdinary = 64;

  bool kills(std::uint32_t i) const {
    return function_.instructions[i].guard.predicate == Guard::kNone;
  }

  /// Numbers the parts that some block reads before it writes them: only these are live between
  /// blocks.
  void numberExposed() {
    std::vector<std::uint32_t> writtenIn(values_.count(), ~0u);
    for (std::uint32_t p = 0; p < flow_.order.size(); ++p) {
      const BasicBlock& block = flow_.blocks[flow_.order[p]];
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        if (values_.removed(i)) continue;
        values_.each(effects_.reads(i), [&](Part part) {
          if (writtenIn[part] == p || number_[part] != kLocal) return;
          number_[part] = static_cast<std::uint32_t>(exposed_.size());
          exposed_.push_back(part);
        });
        if (kills(i)) values_.each(effects_.writes(i), [&](Part part) { writtenIn[part] = p; });
      }
    }
  }

  void solve() {
    const std::size_t count = flow_.order.size();
    std::vector<BitSet> needed(count, BitSet(exposed_.size())),
        written(count, BitSet(exposed_.size()));
    after_.assign(count, BitSet(exposed_.size()));
    std::vector<std::uint32_t> positionOf(flow_.blocks.size());
    for (std::uint32_t p = 0; p < count; ++p) {
      positionOf[flow_.order[p]] = p;
      const BasicBlock& block = flow_.blocks[flow_.order[p]];
      for (std::uint32_t i = block.begin; i < block.end; ++i) {
        if (values_.removed(i)) continue;
        values_.each(effects_.reads(i), [&](Part part) {
          if (number_[part] != kLocal && !written[p].has(number_[part]))
            needed[p].set(number_[part]);
        });
        if (!kills(i)) continue;
        values_.each(effects_.writes(i), [&](Part part) {
          if (number_[part] != kLocal) written[p].set(number_[part]);
        });
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t p = count; p-- > 0;) {
        for (const std::uint32_t next : flow_.blocks[flow_.order[p]].successors)
          after_[p].add(needed[positionOf[next]], nullptr);
        changed |= needed[p].add(after_[p], &written[p]);
      }
    }
  }

  /// In the order of the text; a crowded block in an order that needs fewer.
  std::uint32_t mostIn(std::size_t position) {
    const BasicBlock& block = flow_.blocks[flow_.order[position]];
    after_[position].each([&](std::uint32_t number) { live_.begin(exposed_[number]); });
    std::uint32_t most = live_.count();
    for (std::uint32_t i = block.end; i-- > block.begin;) {
      if (values_.removed(i)) continue;
      live_.step(function_, effects_, values_, i);
      most = std::max(most, live_.count());
    }
    live_.clear();
    if (most <= kOrdinary) return most;
    after_[position].each([&](std::uint32_t number) { live_.begin(exposed_[number]); });
    const std::uint32_t least =
        std::max(kOrdinary, scheduledPressure(function_, block, effects_, values_, live_));
    live_.clear();
    return std::min(most, least);
  }

  const Function& function_;
  const ControlFlow& flow_;
  const RegisterEffects& effects_;
  const ValueParts& values_;
  LiveParts live_;
  std::vector<std::uint32_t> number_;
  std::vector<Part> exposed_;
  std::vector<BitSet> after_;
};

}  // namespace

std::uint32_t estimateRegisters(const Function& function, const ControlFlow& flow,
                                const RegisterEffects& effects) {
  const ValueParts values(function, flow, effects);
  return Pressure(function, flow, effects, values).most();
}

}  // namespace simulator::ptx
