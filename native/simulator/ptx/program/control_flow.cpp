#include "native/simulator/ptx/program/control_flow.h"

#include <algorithm>
#include <string>

#include "native/simulator/ptx/syntax/failure.h"

namespace simulator::ptx {
namespace {

std::string_view opcodeOf(const Instruction& instruction) {
  return instruction.text.substr(0, instruction.text.find('.'));
}

std::uint32_t labelTarget(const Function& function, std::string_view label, std::uint32_t line) {
  const auto found = function.labels.find(label);
  if (found == function.labels.end())
    throw Failure(line, "unknown label '" + std::string(label) + "'");
  return found->second;
}

/// Bourdoncle, "Efficient chaotic iteration strategies with widenings": strongly connected parts,
/// each begun by the node through which it is entered, ordered within again without the edges back
/// to that node.
class WeakTopologicalOrder {
 public:
  explicit WeakTopologicalOrder(const std::vector<BasicBlock>& blocks)
      : blocks_(blocks), number_(blocks.size()) {}
  std::vector<std::uint32_t> make() {
    if (!blocks_.empty()) visit(0, order_);
    std::reverse(order_.begin(), order_.end());
    return std::move(order_);
  }

 private:
  static constexpr std::uint32_t kDone = ~0u;

  std::uint32_t visit(std::uint32_t node, std::vector<std::uint32_t>& into) {
    stack_.push_back(node);
    std::uint32_t head = number_[node] = ++count_;
    bool loop = false;
    // The successor in the text comes last of all visits and so first behind the block.
    const auto& successors = blocks_[node].successors;
    for (auto next = successors.rbegin(); next != successors.rend(); ++next) {
      const std::uint32_t least = number_[*next] == 0 ? visit(*next, into) : number_[*next];
      if (least <= head) {
        head = least;
        loop = true;
      }
    }
    if (head != number_[node]) return head;
    number_[node] = kDone;
    std::uint32_t member = stack_.back();
    stack_.pop_back();
    if (!loop) {
      into.push_back(node);
      return head;
    }
    while (member != node) {
      number_[member] = 0;
      member = stack_.back();
      stack_.pop_back();
    }
    component(node, into);
    return head;
  }

  void component(std::uint32_t node, std::vector<std::uint32_t>& into) {
    std::vector<std::uint32_t> part;
    const auto& successors = blocks_[node].successors;
    for (auto next = successors.rbegin(); next != successors.rend(); ++next) {
      if (number_[*next] == 0) visit(*next, part);
    }
    part.push_back(node);
    into.insert(into.end(), part.begin(), part.end());
  }

  const std::vector<BasicBlock>& blocks_;
  std::vector<std::uint32_t> number_, stack_, order_;
  std::uint32_t count_ = 0;
};

std::vector<bool> findLeaders(const Function& function) {
  std::vector<bool> leader(function.instructions.size() + 1);
  leader[0] = true;
  for (std::uint32_t i = 0; i < function.instructions.size(); ++i) {
    const Instruction& instruction = function.instructions[i];
    const auto labels = branchLabels(function, instruction);
    for (const std::string_view label : labels)
      leader[labelTarget(function, label, instruction.line)] = true;
    if (!labels.empty() || endsPath(instruction)) leader[i + 1] = true;
  }
  return leader;
}

}  // namespace

std::vector<std::string_view> branchLabels(const Function& function,
                                           const Instruction& instruction) {
  const std::string_view opcode = opcodeOf(instruction);
  if (opcode == "bra" && instruction.operands.size() == 1) return {instruction.operands[0].name};
  if (opcode != "brx" || instruction.operands.size() != 2) return {};
  const auto found = function.branchTargets.find(instruction.operands[1].name);
  if (found == function.branchTargets.end())
    throw Failure(instruction.line, "brx.idx needs a label with .branchtargets");
  return found->second;
}

bool endsPath(const Instruction& instruction) {
  if (instruction.guard.predicate != Guard::kNone) return false;
  const std::string_view opcode = opcodeOf(instruction);
  return opcode == "bra" || opcode == "brx" || opcode == "ret" || opcode == "exit";
}

ControlFlow analyse(const Function& function) {
  ControlFlow result;
  const std::vector<bool> leader = findLeaders(function);
  const auto count = static_cast<std::uint32_t>(function.instructions.size());
  result.blockAt.resize(count + 1);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (leader[i]) result.blocks.push_back({i, i, {}, 0});
    result.blockAt[i] = static_cast<std::uint32_t>(result.blocks.size() - 1);
    result.blocks.back().end = i + 1;
  }
  // A block behind the last instruction: a label may stand there, and paths that fall off the end
  // return.
  result.blocks.push_back({count, count, {}, 0});
  result.blockAt[count] = static_cast<std::uint32_t>(result.blocks.size() - 1);
  for (std::uint32_t b = 0; b + 1 < result.blocks.size(); ++b) {
    BasicBlock& block = result.blocks[b];
    const Instruction& last = function.instructions[block.end - 1];
    if (!endsPath(last)) block.successors.push_back(b + 1);
    for (const std::string_view label : branchLabels(function, last)) {
      const std::uint32_t target = result.blockAt[labelTarget(function, label, last.line)];
      if (std::find(block.successors.begin(), block.successors.end(), target) ==
          block.successors.end())
        block.successors.push_back(target);
    }
    for (const std::uint32_t next : block.successors) ++result.blocks[next].predecessors;
  }
  result.order = WeakTopologicalOrder(result.blocks).make();
  return result;
}

}  // namespace simulator::ptx
