#include "native/simulator/ptx/program/fragments.h"

namespace simulator::ptx {
namespace {

/// Start of a register in the matrix, and whether its elements lie below each other.
struct Start {
  unsigned row, column;
  bool down = false;
};

Start linear(const FragmentShape& shape, Element element, unsigned registers, unsigned lane,
             unsigned number) {
  const unsigned inOne = elementsInRegister(element);
  const unsigned at = (lane * registers + number) * inOne % (shape.rows * shape.columns);
  return {at / shape.columns, at % shape.columns};
}

/// A tile is 8 x 4 registers of a: 8 rows, and four registers' elements along them. Tiles of 16
/// rows come in pairs. b is arranged as a whose rows are b's columns.
Start tiles(const FragmentShape& shape, Element element, unsigned lane, unsigned number) {
  const unsigned group = lane / 4, inGroup = lane % 4, inOne = elementsInRegister(element);
  if (shape.role == Role::Sum) {
    const unsigned pairs = number * inOne / 2;
    return {group + 8 * pairs, 2 * inGroup + number * inOne % 2};
  }
  const unsigned halves = shape.role == Role::A ? shape.rows / 8 : 1;
  const unsigned along = (number / halves * 4 + inGroup) * inOne;
  if (shape.role == Role::B) return {along, group, true};
  return {group + 8 * (number % halves), along};
}

/// Lanes 4 * i to 4 * i + 3 and those 16 behind them multiply matrix i.
Start quads(const FragmentShape& shape, Element element, unsigned lane, unsigned number) {
  const unsigned first = lane / 4 % 4 * 8, upper = lane < 16 ? 0 : 4, inQuad = lane % 4;
  const unsigned at = number * elementsInRegister(element);
  if (shape.role == Role::Sum) {
    if (element == Element::F16) return {first + inQuad + upper, at};
    return {first + (lane & 1) + (number & 2) + upper, (number & 4) + (lane & 2) + (number & 1)};
  }
  if (shape.role == Role::A) {
    if (shape.columnMajor) return {first + at + upper, inQuad, true};
    return {first + inQuad + upper, at};
  }
  if (shape.columnMajor) return {at, first + inQuad + upper, true};
  return {inQuad, first + at + upper};
}

}  // namespace

unsigned registersOf(const FragmentShape& shape, Element element) {
  return shape.rows * shape.columns / kLanes / elementsInRegister(element);
}

Fragment fragmentOf(const FragmentShape& shape, Element element, unsigned registers) {
  Fragment fragment{.element = element, .registers = static_cast<std::uint8_t>(registers)};
  for (unsigned number = 0; number < registers; ++number) {
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      const Start start =
          shape.arrangement == Arrangement::Linear ? linear(shape, element, registers, lane, number)
          : shape.arrangement == Arrangement::Tiles ? tiles(shape, element, lane, number)
                                                    : quads(shape, element, lane, number);
      fragment.first[number][lane] =
          static_cast<std::uint16_t>(start.row * shape.columns + start.column);
      fragment.step = static_cast<std::uint16_t>(start.down ? shape.columns : 1);
    }
  }
  return fragment;
}

}  // namespace simulator::ptx
