// Which lane holds which element of a matrix, and in which register.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/matrix.h"

namespace simulator::ptx {

/// The operands of a product: a has rows x depth elements, b depth x columns, c and d rows x
/// columns.
enum class Role : std::uint8_t { A, B, Sum };

struct FragmentShape {
  Arrangement arrangement{};
  Role role{};
  unsigned rows = 0, columns = 0;  ///< of the operand
  bool columnMajor = false;        ///< Quads: the layout that the instruction names
};

Fragment fragmentOf(const FragmentShape& shape, Element element, unsigned registers);
/// Registers of a fragment of mma. A wmma fragment may hold elements more than once.
unsigned registersOf(const FragmentShape& shape, Element element);

}  // namespace simulator::ptx
