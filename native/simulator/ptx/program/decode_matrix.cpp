// wmma: loads and stores of matrices, and their products.
#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/matrix.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

struct Shape {
  std::string_view name;
  std::uint8_t m, n, k;
};

constexpr Shape kShapes[] = {{"m16n16k16", 16, 16, 16},
                             {"m32n8k16", 32, 8, 16},
                             {"m8n32k16", 8, 32, 16},
                             {"m16n16k8", 16, 16, 8},
                             {"m8n8k4", 8, 8, 4}};

const Shape* takeShape(Modifiers& modifiers) {
  const auto found = std::find_if(std::begin(kShapes), std::end(kShapes),
                                  [&](const Shape& shape) { return modifiers.take(shape.name); });
  return found == std::end(kShapes) ? nullptr : found;
}

unsigned registerBytesOf(Type type) { return type == Type::F64 ? 8 : 4; }

/// Which types an instruction of this shape may multiply.
bool multiplies(const Shape& shape, Type type) {
  if (shape.k == 8) return type == Type::TF32;
  if (shape.k == 4) return type == Type::F64;
  return type == Type::F16 || type == Type::BF16 || type == Type::U8 || type == Type::S8;
}

}  // namespace

void Lowerer::matrixAccess(const Instruction& instruction, Modifiers& modifiers, bool loads) {
  const bool a = modifiers.take("a"), b = modifiers.take("b"),
             accumulators = modifiers.takeAny({"c", "d"});
  const bool columnMajor = modifiers.take("col");
  const bool complete =
      modifiers.take("sync") && modifiers.take("aligned") && (columnMajor || modifiers.take("row"));
  const Shape* shape = takeShape(modifiers);
  const Space named = modifiers.takeSpace();
  MatrixAccess access;
  access.fragment.type = modifiers.takeType();
  if (!complete || shape == nullptr || !(a || b || accumulators) ||
      access.fragment.type == Type::None)
    unsupported(instruction);
  const Type type = access.fragment.type;
  if (accumulators
          ? type != Type::F16 && type != Type::F32 && type != Type::S32 && type != Type::F64
          : !multiplies(*shape, type)) {
    unsupported(instruction);
  }
  access.fragment.rows = b ? shape->k : shape->m;
  access.fragment.columns = a ? shape->k : shape->n;
  access.columnMajor = columnMajor;
  const std::vector<Operand>& registers = operand(instruction, loads ? 0 : 1).elements;
  const unsigned inRegister = registerBytesOf(type) / bytesOf(type);
  access.fragment.perLane = static_cast<std::uint8_t>(registers.size() * inRegister);
  const unsigned elements = unsigned{access.fragment.rows} * access.fragment.columns;
  if (registers.empty() || registers.size() > 8 || access.fragment.perLane * kLanes % elements != 0)
    malformed(instruction, "a fragment has not so many registers");
  const Type held = registerBytesOf(type) == 8 ? Type::B64 : Type::B32;
  const Slot stride = instruction.operands.size() > 2
                          ? source(instruction, operand(instruction, 2), Type::U32)
                          : number(columnMajor ? access.fragment.rows : access.fragment.columns, 4);
  for (std::size_t first = 0; first < registers.size(); first += 4) {
    Operation op = begin(instruction, loads ? loadMatrix : storeMatrix);
    const Space space = addressOperand(op, instruction, operand(instruction, loads ? 1 : 0), named);
    if (space != Space::Generic && space != Space::Global && space != Space::Shared)
      unsupported(instruction);
    access.shared = space == Space::Shared;
    access.first = static_cast<std::uint8_t>(first * inRegister);
    const auto words = std::bit_cast<std::array<std::uint32_t, 2>>(access);
    op.detail = words[0];
    op.target = words[1];
    use(op, 5, stride);
    for (std::size_t i = first; i < std::min(registers.size(), first + 4); ++i) {
      const auto slot = static_cast<unsigned>(i - first);
      if (loads) {
        define(op, slot, destination(instruction, registers[i], held));
      } else {
        use(op, slot, source(instruction, registers[i], held));
      }
    }
    emit(op);
  }
}

/// Copies a fragment's registers into temporaries of 16 bytes a lane; answers how many elements a
/// lane has.
unsigned Lowerer::gatherMatrix(const Instruction& instruction, const Operand& fragment, Type type,
                               Slot* temporaries) {
  const unsigned bytes = registerBytesOf(type), inOne = 16 / bytes;
  const std::vector<Operand>& registers = fragment.elements;
  if (registers.empty() || registers.size() > 2 * inOne)
    malformed(instruction, "a fragment has not so many registers");
  for (unsigned t = 0; t < 2; ++t) {
    Operation op = begin(instruction, gatherFragment);
    op.width = static_cast<std::uint8_t>(bytes);
    for (unsigned i = 0; i < inOne && t * inOne + i < registers.size(); ++i) {
      use(op, 1 + i,
          source(instruction, registers[t * inOne + i], bytes == 8 ? Type::B64 : Type::B32));
    }
    define(op, 0, temporaries[t] = temporary(Type::B128));
    emit(op);
  }
  return static_cast<unsigned>(registers.size()) * bytes / bytesOf(type);
}

void Lowerer::matrixProduct(const Instruction& instruction, Modifiers& modifiers) {
  const bool complete = modifiers.take("sync") && modifiers.take("aligned");
  // The layouts of a and b: fragments hold the elements by row and column, wherever those were in
  // memory.
  modifiers.takeAny({"row", "col"});
  modifiers.takeAny({"row", "col"});
  const Shape* shape = takeShape(modifiers);
  if (!complete || shape == nullptr || instruction.operands.size() != 4) unsupported(instruction);
  MatrixProduct product{shape->m, shape->n, shape->k};
  product.saturates = modifiers.take("satfinite");
  modifiers.take("rn");
  product.d = modifiers.takeType();
  product.a = modifiers.takeType();
  product.b = modifiers.takeType();
  product.c = modifiers.takeType();
  if (product.b == Type::None) {  // of f16 only the types of the accumulators are named
    product.c = product.a;
    product.a = product.b = Type::F16;
  }
  const bool accumulates = isFloat(product.a) ? (product.d == Type::F32 || product.d == Type::F64 ||
                                                 product.d == Type::F16)
                                              : product.d == Type::S32;
  const bool alike =
      isFloat(product.a) == isFloat(product.c) && (product.a == product.b || !isFloat(product.a));
  if (!multiplies(*shape, product.a) || !multiplies(*shape, product.b) || !accumulates || !alike)
    unsupported(instruction);
  Slot slots[8] = {};
  unsigned perLane[4] = {};
  perLane[1] = gatherMatrix(instruction, operand(instruction, 1), product.a, slots + 2);
  perLane[2] = gatherMatrix(instruction, operand(instruction, 2), product.b, slots + 4);
  perLane[3] = gatherMatrix(instruction, operand(instruction, 3), product.c, slots + 6);
  const std::vector<Operand>& results = operand(instruction, 0).elements;
  const unsigned bytes = registerBytesOf(product.d), inOne = 16 / bytes;
  perLane[0] = static_cast<unsigned>(results.size()) * bytes / bytesOf(product.d);
  const unsigned sizes[4] = {unsigned{shape->m} * shape->n, unsigned{shape->m} * shape->k,
                             unsigned{shape->k} * shape->n, unsigned{shape->m} * shape->n};
  for (unsigned i = 0; i < 4; ++i) {
    const bool exact = i == 0 || i == 3;
    if (perLane[i] * kLanes % sizes[i] != 0 || (exact && perLane[i] * kLanes != sizes[i]))
      malformed(instruction, "a fragment has not so many registers");
  }
  // All lanes bring their fragments before one of them has its part of the result.
  Operation together =
      beginSync(instruction, {.op = Op::WarpBarrier}, static_cast<unsigned>(Exchange::Nothing));
  use(together, Operation::kMembers, number(kAllLanes, 4));
  emit(together);
  Operation op = begin(instruction, multiplyMatrices);
  op.immediate = std::bit_cast<std::int64_t>(product);
  for (unsigned i = 0; i < 4; ++i) op.detail |= perLane[i] << (8 * i);
  for (unsigned i = 2; i < 8; ++i) use(op, i, slots[i]);
  for (unsigned i = 0; i < 2; ++i) define(op, i, slots[i] = temporary(Type::B128));
  emit(op);
  for (unsigned t = 0; t * inOne < results.size(); ++t) {
    Operation spread = begin(instruction, spreadFragment);
    spread.width = static_cast<std::uint8_t>(bytes);
    use(spread, 4, slots[t]);
    for (unsigned i = 0; i < inOne && t * inOne + i < results.size(); ++i) {
      define(spread, i,
             destination(instruction, results[t * inOne + i], bytes == 8 ? Type::B64 : Type::B32));
    }
    emit(spread);
  }
}

void Lowerer::matrix(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.take("load")) return matrixAccess(instruction, modifiers, true);
  if (modifiers.take("store")) return matrixAccess(instruction, modifiers, false);
  if (!modifiers.take("mma")) unsupported(instruction);
  matrixProduct(instruction, modifiers);
}

}  // namespace simulator::ptx
