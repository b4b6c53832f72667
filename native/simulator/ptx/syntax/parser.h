// PTX text to tree. Register and variable names are resolved here, by scope; labels and names of
// other functions later.
#pragma once

#include <string_view>

#include "native/simulator/ptx/syntax/tree.h"

namespace simulator::ptx {

/// Throws Failure, which names the line.
Module parse(std::string_view text);

/// Converts a number as written into the bits of a value of `type`.
std::uint64_t literalBits(Operand::Kind kind, std::uint64_t bits, Type type);

}  // namespace simulator::ptx
