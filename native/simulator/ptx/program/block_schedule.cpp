#include "native/simulator/ptx/program/block_schedule.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace simulator::ptx {
namespace {

/// How many of the instructions that may come next are compared: bounds the time for a block of any
/// length.
constexpr std::size_t kLookahead = 128;

enum class Order { Free, Load, Fixed };

/// Reasons other than registers why an instruction must keep its place.
Order orderOf(const Instruction& instruction) {
  static const std::unordered_set<std::string_view> kFree{
      "add", "sub",  "mul",  "mad",  "mul24", "mad24", "fma",  "neg",      "abs",
      "min", "max",  "setp", "set",  "selp",  "slct",  "mov",  "cvt",      "cvta",
      "and", "or",   "xor",  "not",  "cnot",  "shl",   "shr",  "shf",      "bfe",
      "bfi", "prmt", "lop3", "popc", "clz",   "brev",  "sqrt", "rsqrt",    "rcp",
      "div", "rem",  "ex2",  "lg2",  "sin",   "cos",   "sad",  "copysign", "dp4a"};
  const std::string_view text = instruction.text, opcode = text.substr(0, text.find('.'));
  if (kFree.contains(opcode) && text.find(".cc") == std::string_view::npos) return Order::Free;
  if (text.starts_with("ld.param") || text.starts_with("ld.const") ||
      text.starts_with("ld.global.nc"))
    return Order::Free;
  const bool plainLoad = opcode == "ld" && text.find("volatile") == std::string_view::npos &&
                         text.find("acquire") == std::string_view::npos;
  return plainLoad ? Order::Load : Order::Fixed;
}

class Schedule {
 public:
  Schedule(const Function& function, const BasicBlock& block, const RegisterEffects& effects,
           const ValueParts& values)
      : function_(function), effects_(effects), values_(values) {
    for (std::uint32_t i = block.begin; i < block.end; ++i) {
      if (!values.removed(i)) nodes_.push_back({i, {}, 0});
    }
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) depend(n);
  }

  std::uint32_t run(LiveParts& live) {
    std::set<std::uint32_t> ready;
    for (std::uint32_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].followers == 0) ready.insert(n);
    }
    std::uint32_t most = live.count();
    while (!ready.empty()) {
      const std::uint32_t chosen = best(ready, live);
      ready.erase(chosen);
      live.step(function_, effects_, values_, nodes_[chosen].instruction);
      most = std::max(most, live.count());
      for (const std::uint32_t before : nodes_[chosen].before) {
        if (--nodes_[before].followers == 0) ready.insert(before);
      }
    }
    return most;
  }

 private:
  struct Node {
    std::uint32_t instruction;
    std::vector<std::uint32_t> before;  ///< nodes that must come earlier
    std::uint32_t followers;            ///< nodes that must come later and are not placed yet
  };
  struct Uses {
    std::uint32_t writer = kNone;
    std::vector<std::uint32_t> readers;  ///< since it was written
  };
  static constexpr std::uint32_t kNone = ~0u;

  void precede(std::uint32_t before, std::uint32_t node) {
    if (before == kNone || before == node) return;
    nodes_[node].before.push_back(before);
    ++nodes_[before].followers;
  }

  void depend(std::uint32_t n) {
    const std::uint32_t i = nodes_[n].instruction;
    for (const std::uint32_t r : effects_.reads(i)) {
      Uses& uses = uses_[r];
      precede(uses.writer, n);
      uses.readers.push_back(n);
    }
    for (const std::uint32_t r : effects_.writes(i)) {
      Uses& uses = uses_[r];
      precede(uses.writer, n);
      for (const std::uint32_t reader : uses.readers) precede(reader, n);
      uses = {n, {}};
    }
    const Order order = orderOf(function_.instructions[i]);
    if (order == Order::Free) return;
    precede(fixed_, n);
    if (order == Order::Load) {
      loads_.push_back(n);
      return;
    }
    for (const std::uint32_t load : loads_) precede(load, n);
    loads_.clear();
    fixed_ = n;
  }

  /// The one that leaves the fewest parts alive; of equals the last in the text.
  std::uint32_t best(const std::set<std::uint32_t>& ready, const LiveParts& live) const {
    std::uint32_t chosen = *ready.rbegin();
    int least = growth(chosen, live);
    std::size_t looked = 1;
    for (auto at = std::next(ready.rbegin()); at != ready.rend() && looked < kLookahead;
         ++at, ++looked) {
      const int more = growth(*at, live);
      if (more < least) chosen = *at, least = more;
    }
    return chosen;
  }

  int growth(std::uint32_t n, const LiveParts& live) const {
    int result = 0;
    values_.each(effects_.reads(nodes_[n].instruction),
                 [&](Part part) { result += live.has(part) ? 0 : 1; });
    values_.each(effects_.writes(nodes_[n].instruction),
                 [&](Part part) { result -= live.has(part) ? 1 : 0; });
    return result;
  }

  const Function& function_;
  const RegisterEffects& effects_;
  const ValueParts& values_;
  std::vector<Node> nodes_;
  std::unordered_map<std::uint32_t, Uses> uses_;  ///< by register
  std::vector<std::uint32_t> loads_;              ///< since the last fixed one
  std::uint32_t fixed_ = kNone;
};

}  // namespace

std::uint32_t scheduledPressure(const Function& function, const BasicBlock& block,
                                const RegisterEffects& effects, const ValueParts& values,
                                LiveParts& live) {
  return Schedule(function, block, effects, values).run(live);
}

}  // namespace simulator::ptx
