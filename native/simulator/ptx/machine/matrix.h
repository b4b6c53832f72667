// Matrix instructions of a warp: wmma.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"
#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

/// The part of a matrix that each lane holds. Lane l's element e is number (l * perLane + e) modulo
/// the number of all, counted along the rows. CUDA leaves this order open. A matrix with fewer
/// elements than the registers hold is there several times.
struct Fragment {
  std::uint8_t rows = 0, columns = 0, perLane = 0;
  Type type = Type::None;
};

/// A load or store of at most four registers of a fragment; in Operation::detail and ::target.
struct MatrixAccess {
  Fragment fragment;
  std::uint8_t first = 0;  ///< of the lane's elements: where the registers begin
  bool columnMajor = false;
  bool shared = false;  ///< the address is one of shared memory
  std::uint8_t unused = 0;
};

/// d = a * b + c, where a has `rows` x `depth` elements and b `depth` x `columns`; in
/// Operation::immediate.
struct MatrixProduct {
  std::uint8_t rows = 0, columns = 0, depth = 0;
  Type a = Type::None, b = Type::None, c = Type::None, d = Type::None;
  bool saturates = false;
};

/// Slots 0 to 3: registers; kAddress: the address; 5: the stride in elements.
const Operation* loadMatrix(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* storeMatrix(Warp& w, const Operation* op, std::uint32_t mask);
/// Slots 0 and 1: temporaries of 16 bytes a lane for the result; 2 and 3, 4 and 5, 6 and 7: those
/// of a, b and c. `detail` has the elements that a lane holds of d, a, b and c, eight bits each.
/// All lanes of the warp run it at once.
const Operation* multiplyMatrices(Warp& w, const Operation* op, std::uint32_t mask);
/// Slot 0: a temporary; 1 to 4: registers of `width` bytes.
const Operation* gatherFragment(Warp& w, const Operation* op, std::uint32_t mask);
/// Slots 0 to 3: registers of `width` bytes; 4: a temporary.
const Operation* spreadFragment(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
