// Basic blocks of a function and the order in which they are laid out.
#pragma once

#include <cstdint>
#include <vector>

#include "native/simulator/ptx/syntax/tree.h"

namespace simulator::ptx {

struct BasicBlock {
  std::uint32_t begin = 0, end = 0;  ///< instructions; the last one may be a branch
  std::vector<std::uint32_t> successors;
  std::uint32_t predecessors = 0;
};

struct ControlFlow {
  std::vector<BasicBlock> blocks;      ///< in the order of the text
  std::vector<std::uint32_t> blockAt;  ///< by instruction, one more for the end
  /// Reachable blocks, so ordered that every edge but those closing a loop leads forwards and every
  /// loop is contiguous (Bourdoncle's weak topological order). Lanes that run the earliest place
  /// first then meet at the earliest place that they share: see machine/split.cpp.
  std::vector<std::uint32_t> order;
};

ControlFlow analyse(const Function& function);

/// The labels that a branch instruction may lead to; empty for any other instruction.
std::vector<std::string_view> branchLabels(const Function& function,
                                           const Instruction& instruction);
/// True for an instruction after which the next one is never run: an unguarded bra, brx, ret or
/// exit.
bool endsPath(const Instruction& instruction);

}  // namespace simulator::ptx
