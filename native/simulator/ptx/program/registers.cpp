// From register numbers to places in the frame. Registers whose values are never needed at the same
// time share a place, so that the frame of a large kernel still fits the host's caches. Liveness is
// that of one thread: lanes write only their own elements.
#include <algorithm>
#include <map>
#include <utility>

#include "native/simulator/ptx/program/bit_set.h"
#include "native/simulator/ptx/program/lowerer.h"
#include "native/simulator/ptx/program/register_estimate.h"

namespace simulator::ptx {
namespace {

constexpr std::uint32_t laneBytes(Type type) {
  return type == Type::Pred ? 4 : std::max(2u, bytesOf(type)) * kLanes;
}

template <class F>
void eachRegister(const Operation& op, std::uint8_t which, F act) {
  for (unsigned i = 0; i < Operation::kSlots; ++i) {
    if ((which & (1u << i)) && !(op.slot[i] & kConstantBank)) act(op.slot[i]);
  }
}

struct Interval {
  std::uint32_t begin = ~0u, end = 0;
  void cover(std::uint32_t at) {
    begin = std::min(begin, at);
    end = std::max(end, at);
  }
};

/// Places of one size that are free again, and the end of the frame so far.
class Places {
 public:
  std::uint32_t take(std::uint32_t bytes) {
    std::vector<std::uint32_t>& free = free_[bytes];
    if (free.empty()) return std::exchange(end_, end_ + bytes);
    const std::uint32_t place = free.back();
    free.pop_back();
    return place;
  }
  void giveBack(std::uint32_t place, std::uint32_t bytes) { free_[bytes].push_back(place); }
  std::uint32_t end() const { return end_; }

 private:
  std::map<std::uint32_t, std::vector<std::uint32_t>> free_;
  std::uint32_t end_ = 0;
};

}  // namespace

/// Stretches of operations between which control may pass, by the first of each.
std::vector<std::uint32_t> Lowerer::stretches() const {
  std::vector<std::uint32_t> starts;
  for (const std::uint32_t block : flow_.order) starts.push_back(blockStart_[block]);
  starts.push_back(static_cast<std::uint32_t>(code_.operations.size()));
  return starts;
}

/// Live range of each register, as an interval over the operations in their order.
std::vector<std::pair<std::uint32_t, std::uint32_t>> Lowerer::liveIntervals() const {
  const std::vector<std::uint32_t> starts = stretches();
  const std::size_t count = flow_.order.size();
  std::vector<BitSet> needed(count, BitSet(registers_.size())),
      written(count, BitSet(registers_.size())), after(count, BitSet(registers_.size()));
  std::vector<std::uint32_t> positionOf(flow_.blocks.size());
  std::vector<Interval> intervals(registers_.size());
  for (std::uint32_t p = 0; p < count; ++p) {
    positionOf[flow_.order[p]] = p;
    for (std::uint32_t at = starts[p]; at < starts[p + 1]; ++at) {
      const Operation& op = code_.operations[at];
      const auto read = [&](std::uint32_t r) {
        intervals[r].cover(at);
        if (!written[p].has(r)) needed[p].set(r);
      };
      eachRegister(op, op.uses, read);
      if (op.guard != Operation::kNoGuard) read(op.guard);
      eachRegister(op, op.defines, [&](std::uint32_t r) {
        intervals[r].cover(at);
        if (op.guard == Operation::kNoGuard) written[p].set(r);
      });
    }
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t p = count; p-- > 0;) {
      for (const std::uint32_t next : flow_.blocks[flow_.order[p]].successors)
        after[p].add(needed[positionOf[next]], nullptr);
      changed |= needed[p].add(after[p], &written[p]);
    }
  }
  for (std::size_t p = 0; p < count; ++p) {
    needed[p].each([&](std::uint32_t r) { intervals[r].cover(starts[p]); });
    after[p].each([&](std::uint32_t r) { intervals[r].cover(starts[p + 1]); });
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
  for (const Interval& interval : intervals) result.emplace_back(interval.begin, interval.end);
  return result;
}

/// Uses and definitions of the registers that the text declares; temporaries of the lowering
/// are none of the hardware's.
std::uint32_t Lowerer::hardwareRegisters() const {
  RegisterEffects effects(function_.instructions.size());
  std::vector<std::uint32_t> writes, reads;
  for (const std::uint32_t block : flow_.order) {
    for (std::uint32_t i = flow_.blocks[block].begin; i < flow_.blocks[block].end; ++i) {
      writes.clear();
      reads.clear();
      for (std::uint32_t at = operationsOf_[i].first; at < operationsOf_[i].second; ++at) {
        const Operation& op = code_.operations[at];
        const auto into = [&](std::vector<std::uint32_t>& list) {
          return [this, &list](std::uint32_t r) {
            if (r < function_.registers.size()) list.push_back(r);
          };
        };
        eachRegister(op, op.uses, into(reads));
        if (op.guard != Operation::kNoGuard) into(reads)(op.guard);
        eachRegister(op, op.defines, into(writes));
      }
      effects.add(i, writes, reads);
    }
  }
  return estimateRegisters(function_, flow_, effects);
}

void Lowerer::allocateRegisters() {
  const auto intervals = liveIntervals();
  std::vector<std::uint32_t> order, place(registers_.size());
  for (std::uint32_t r = 0; r < intervals.size(); ++r) {
    if (intervals[r].first != ~0u) order.push_back(r);
  }
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return intervals[a].first < intervals[b].first;
  });
  Places wide, predicates;
  std::multimap<std::uint32_t, std::uint32_t> ending;  // by end, registers that hold a place
  for (const std::uint32_t r : order) {
    while (!ending.empty() && ending.begin()->first < intervals[r].first) {
      const std::uint32_t done = ending.begin()->second;
      (registers_[done] == Type::Pred ? predicates : wide)
          .giveBack(place[done], laneBytes(registers_[done]));
      ending.erase(ending.begin());
    }
    place[r] = (registers_[r] == Type::Pred ? predicates : wide).take(laneBytes(registers_[r]));
    ending.emplace(intervals[r].second, r);
  }
  for (std::uint32_t r = 0; r < place.size(); ++r)
    place[r] += registers_[r] == Type::Pred ? wide.end() : 0;
  code_.frameBytes = wide.end() + predicates.end();
  for (Operation& op : code_.operations) {
    if (op.guard != Operation::kNoGuard) op.guard = place[op.guard];
    for (unsigned i = 0; i < Operation::kSlots; ++i) {
      if (!((op.uses | op.defines) & (1u << i))) continue;
      const Slot slot = op.slot[i];
      op.slot[i] = slot & kConstantBank
                       ? kConstantBank | code_.constants[slot & ~kConstantBank].offset
                       : place[slot];
    }
  }
}

}  // namespace simulator::ptx
