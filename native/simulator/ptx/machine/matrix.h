// Matrix instructions of a warp: wmma, mma, ldmatrix, stmatrix, movmatrix.
#pragma once

#include <array>
#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"
#include "native/simulator/ptx/syntax/types.h"

namespace simulator::ptx {

/// Element types of a matrix. B1: words of 32 bits.
enum class Element : std::uint8_t {
  None,
  F16,
  BF16,
  TF32,
  F32,
  F64,
  E4M3,
  E5M2,
  S8,
  U8,
  S4,
  U4,
  S32,
  B1
};

constexpr unsigned bitsOf(Element element) {
  switch (element) {
    case Element::F64: return 64;
    case Element::F16:
    case Element::BF16: return 16;
    case Element::E4M3:
    case Element::E5M2:
    case Element::S8:
    case Element::U8: return 8;
    case Element::S4:
    case Element::U4: return 4;
    default: return 32;
  }
}
constexpr unsigned registerBytesOf(Element element) { return element == Element::F64 ? 8 : 4; }
constexpr unsigned elementsInRegister(Element element) {
  return 8 * registerBytesOf(element) / bitsOf(element);
}
constexpr bool isWhole(Element element) { return element >= Element::S8; }

/// How the lanes of a warp hold a matrix. Linear: wmma, whose order CUDA leaves open; lane l's
/// element e is number (l * elements of a lane + e) modulo the number of all, counted along the
/// rows. Tiles: mma. Quads: mma.m8n8k4 of f16, where groups of 8 lanes multiply matrices of their
/// own, which lie below each other here.
enum class Arrangement : std::uint8_t { Linear, Tiles, Quads };

/// One operand of a product: where the registers' elements belong in the matrix.
struct Fragment {
  static constexpr unsigned kRegisters = 8;
  Element element = Element::None;
  std::uint8_t registers = 0;
  std::uint16_t step = 1;  ///< from an element of a register to the next
  std::array<std::array<std::uint16_t, kLanes>, kRegisters> first{};  ///< by register and lane
  bool operator==(const Fragment&) const = default;
};

/// d = a * b + c, where a has `rows` x `depth` elements and b `depth` x `columns`.
struct MatrixProduct {
  std::uint16_t rows = 0, columns = 0, depth = 0;
  bool quads = false;        ///< row i is multiplied with columns i / 8 * 8 and following ones of b
  bool saturates = false;    ///< .satfinite
  bool conjunction = false;  ///< of bits: .and, not .xor
  Fragment d, a, b, c;
  bool operator==(const MatrixProduct&) const = default;
};

/// A load or store of at most four registers of a fragment; in Operation::detail and ::target.
struct MatrixAccess {
  std::uint8_t rows = 0, columns = 0, perLane = 0;
  std::uint8_t bytes = 0;  ///< of an element
  std::uint8_t first = 0;  ///< of the lane's elements: where the registers begin
  bool columnMajor = false;
  bool shared = false;       ///< the address is one of shared memory
  std::uint8_t divisor = 1;  ///< elements of the stride that are one of ours
};

/// Slots 0 to 3: registers; kAddress: the address; 5: the stride in elements.
const Operation* loadMatrix(Warp& w, const Operation* op, std::uint32_t mask);
const Operation* storeMatrix(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
