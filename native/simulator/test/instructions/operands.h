// The operand values that a form is tested with.
#pragma once

#include <array>

#include "native/simulator/test/instructions/form.h"

namespace instructions {

using Sources = std::array<u64, 4>;

/// Combinations of edge cases, then random ones; the same for the same kinds. The count is a
/// multiple of 256.
std::vector<Sources> sourcesFor(const std::vector<Kind>& kinds);

}  // namespace instructions
