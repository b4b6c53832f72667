// wmma: loads and stores of matrices, and their products. mma, ldmatrix, stmatrix, movmatrix.
#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string_view>
#include <utility>

#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/matrix.h"
#include "native/simulator/ptx/program/fragments.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

constexpr std::uint32_t bit(Element element) { return 1u << static_cast<unsigned>(element); }
constexpr std::uint32_t kHalves = bit(Element::F16) | bit(Element::BF16),
                        kBytes = bit(Element::S8) | bit(Element::U8),
                        kNibbles = bit(Element::S4) | bit(Element::U4),
                        kSmall = bit(Element::E4M3) | bit(Element::E5M2),
                        kTensor = bit(Element::TF32), kDouble = bit(Element::F64),
                        kBits = bit(Element::B1);

struct Shape {
  std::string_view name;
  std::uint16_t m, n, k;
  std::uint32_t elements;  ///< that an instruction of this shape multiplies
};

constexpr Shape kFragmentShapes[] = {{"m16n16k16", 16, 16, 16, kHalves | kBytes},
                                     {"m32n8k16", 32, 8, 16, kHalves | kBytes},
                                     {"m8n32k16", 8, 32, 16, kHalves | kBytes},
                                     {"m16n16k8", 16, 16, 8, kTensor},
                                     {"m8n8k4", 8, 8, 4, kDouble},
                                     {"m8n8k32", 8, 8, 32, kNibbles},
                                     {"m8n8k128", 8, 8, 128, kBits}};

constexpr Shape kRegisterShapes[] = {
    {"m8n8k4", 8, 8, 4, bit(Element::F16) | kDouble},
    {"m8n8k16", 8, 8, 16, kBytes},
    {"m8n8k32", 8, 8, 32, kNibbles},
    {"m8n8k128", 8, 8, 128, kBits},
    {"m16n8k4", 16, 8, 4, kTensor | kDouble},
    {"m16n8k8", 16, 8, 8, kHalves | kTensor | kDouble},
    {"m16n8k16", 16, 8, 16, kHalves | kBytes | kSmall | kDouble},
    {"m16n8k32", 16, 8, 32, kBytes | kNibbles | kSmall},
    {"m16n8k64", 16, 8, 64, kNibbles},
    {"m16n8k128", 16, 8, 128, kBits},
    {"m16n8k256", 16, 8, 256, kBits},
};

const Shape* takeShape(Modifiers& modifiers, std::span<const Shape> shapes) {
  const auto found = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const Shape& shape) { return modifiers.take(shape.name); });
  return found == shapes.end() ? nullptr : &*found;
}

Element takeElement(Modifiers& modifiers) {
  static constexpr std::pair<std::string_view, Element> kNames[] = {
      {"f16", Element::F16},   {"bf16", Element::BF16}, {"tf32", Element::TF32},
      {"f32", Element::F32},   {"f64", Element::F64},   {"e4m3", Element::E4M3},
      {"e5m2", Element::E5M2}, {"s8", Element::S8},     {"u8", Element::U8},
      {"s4", Element::S4},     {"u4", Element::U4},     {"s32", Element::S32},
      {"b1", Element::B1}};
  return modifiers.takeFirst<Element>(kNames, Element::None);
}

bool takeLayout(Modifiers& modifiers, bool& columnMajor) {
  static constexpr std::pair<std::string_view, int> kNames[] = {{"row", 1}, {"col", 2}};
  const int layout = modifiers.takeFirst<int>(kNames, 0);
  columnMajor = layout == 2;
  return layout != 0;
}

bool multiplies(const Shape& shape, Element element) {
  return (shape.elements & bit(element)) != 0;
}
/// Elements of less than a byte, which lie along the rows of a and the columns of b.
bool isPacked(Element element) { return bitsOf(element) < 8 || element == Element::B1; }
bool isSmall(Element element) { return (kSmall & bit(element)) != 0; }
Type heldBy(Element element) { return registerBytesOf(element) == 8 ? Type::B64 : Type::B32; }

/// Whether elements a and b may be summed up in d, beginning with c.
bool legalProduct(const MatrixProduct& product, bool fragments) {
  const Element a = product.a.element, b = product.b.element, c = product.c.element,
                d = product.d.element;
  if (isWhole(a)) {
    const bool alike = a == b || (!fragments && isWhole(b) && bitsOf(a) == bitsOf(b));
    return alike && c == Element::S32 && d == Element::S32 &&
           (a != Element::B1 || !product.saturates);
  }
  if (product.saturates) return false;
  if (isSmall(a)) return isSmall(b) && c == d && (c == Element::F16 || c == Element::F32);
  if (a != b) return false;
  if (a == Element::F64) return c == Element::F64 && d == Element::F64;
  if (a != Element::F16) return c == Element::F32 && d == Element::F32;
  const bool sums =
      (c == Element::F16 || c == Element::F32) && (d == Element::F16 || d == Element::F32);
  if (fragments) return sums;
  return sums && (c == d || (product.quads && d == Element::F32));
}

}  // namespace

void Lowerer::matrixAccess(const Instruction& instruction, Modifiers& modifiers, bool loads) {
  const bool a = modifiers.take("a"), b = modifiers.take("b"),
             accumulators = modifiers.takeAny({"c", "d"});
  MatrixAccess access;
  const bool complete = modifiers.take("sync") && modifiers.take("aligned") &&
                        takeLayout(modifiers, access.columnMajor);
  const Shape* shape = takeShape(modifiers, kFragmentShapes);
  const Space named = modifiers.takeSpace();
  const Element element = takeElement(modifiers);
  require(complete && shape && a + b + accumulators == 1 && element != Element::None, instruction);
  const bool sums = element == Element::F16 || element == Element::F32 || element == Element::S32 ||
                    element == Element::F64;
  require(accumulators ? sums : multiplies(*shape, element), instruction);
  const bool words = isPacked(element);  // which are loaded as such
  const unsigned inWord = element == Element::B1 ? 32 : elementsInRegister(element);
  const unsigned depth = words ? shape->k / inWord : shape->k;
  require(!words || access.columnMajor == b, instruction);
  access.rows = static_cast<std::uint8_t>(b ? depth : shape->m);
  access.columns = static_cast<std::uint8_t>(a ? depth : shape->n);
  if (words) {
    access.rows = 8;
    access.columns = 4;
    access.columnMajor = false;
    access.divisor = static_cast<std::uint8_t>(inWord);
  }
  access.bytes = static_cast<std::uint8_t>(words ? 4 : bitsOf(element) / 8);
  const std::vector<Operand>& registers = operand(instruction, loads ? 0 : 1).elements;
  const unsigned inRegister = registerBytesOf(element) / access.bytes;
  access.perLane = static_cast<std::uint8_t>(registers.size() * inRegister);
  const unsigned elements = unsigned{access.rows} * access.columns;
  if (registers.empty() || registers.size() > 8 || access.perLane * kLanes % elements != 0)
    malformed(instruction, "a fragment has not so many registers");
  const Type held = heldBy(element);
  const unsigned line = access.columnMajor ? access.rows : access.columns;
  const Slot stride = instruction.operands.size() > 2
                          ? source(instruction, operand(instruction, 2), Type::U32)
                          : number(line * access.divisor, 4);
  for (std::size_t first = 0; first < registers.size(); first += 4) {
    Operation op = begin(instruction, loads ? loadMatrix : storeMatrix);
    const Space space = addressOperand(op, instruction, operand(instruction, loads ? 1 : 0), named);
    if (space != Space::Generic && space != Space::Global && space != Space::Shared)
      unsupported(instruction);
    access.shared = space == Space::Shared;
    access.first = static_cast<std::uint8_t>(first * inRegister);
    const auto packed = std::bit_cast<std::array<std::uint32_t, 2>>(access);
    op.detail = packed[0];
    op.target = packed[1];
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

/// An operation that only names the registers of an operand.
Operation Lowerer::carrier(const Instruction& instruction, const Operand& operand, Element element,
                           bool result) {
  const std::vector<Operand>& registers = operand.elements;
  if (registers.empty() || registers.size() > Fragment::kRegisters)
    malformed(instruction, "a fragment has not so many registers");
  Operation op = begin(instruction, nothing);
  for (unsigned i = 0; i < registers.size(); ++i) {
    if (result)
      define(op, i, destination(instruction, registers[i], heldBy(element)));
    else
      use(op, i, source(instruction, registers[i], heldBy(element)));
  }
  return op;
}

std::uint32_t Lowerer::productNumber(const MatrixProduct& product) {
  const auto same = [&](const auto& each) { return *each == product; };
  const auto found = std::find_if(code_.products.begin(), code_.products.end(), same);
  const auto number = static_cast<std::uint32_t>(found - code_.products.begin());
  if (found == code_.products.end())
    code_.products.push_back(std::make_shared<const MatrixProduct>(product));
  return number;
}

/// All lanes bring their registers before one of them has its part of the result.
void Lowerer::converge(const Instruction& instruction) {
  Operation op =
      beginSync(instruction, {.op = Op::WarpBarrier}, static_cast<unsigned>(Exchange::Nothing));
  use(op, Operation::kMembers, number(kAllLanes, 4));
  emit(op);
}

/// A product as its modifiers describe it; its fragments have no registers yet.
Lowerer::Multiplication Lowerer::takeMultiplication(const Instruction& instruction,
                                                    Modifiers& modifiers, bool fragments) {
  Multiplication result;
  MatrixProduct& product = result.product;
  const bool complete = modifiers.take("sync") && modifiers.take("aligned") &&
                        takeLayout(modifiers, result.columnMajorA) &&
                        takeLayout(modifiers, result.columnMajorB);
  const Shape* shape =
      fragments ? takeShape(modifiers, kFragmentShapes) : takeShape(modifiers, kRegisterShapes);
  require(complete && shape && instruction.operands.size() == 4, instruction);
  product.rows = shape->m;
  product.columns = shape->n;
  product.depth = shape->k;
  product.saturates = modifiers.take("satfinite");
  for (Fragment* each : {&product.d, &product.a, &product.b, &product.c})
    each->element = takeElement(modifiers);
  if (product.b.element == Element::None) {  // wmma of f16 names the accumulators' elements only
    require(fragments, instruction);
    product.c.element = product.a.element;
    product.a.element = product.b.element = Element::F16;
  }
  const Element element = product.a.element;
  product.quads = !fragments && shape->k == 4 && element == Element::F16;
  require(multiplies(*shape, element) && multiplies(*shape, product.b.element) &&
              legalProduct(product, fragments),
          instruction);
  // The fragments of wmma have the elements by row and column, wherever those were in memory.
  const bool placed = fragments && !isPacked(element);
  require(product.quads || placed || (!result.columnMajorA && result.columnMajorB), instruction);
  result.arrangement = product.quads ? Arrangement::Quads
                       : placed      ? Arrangement::Linear
                                     : Arrangement::Tiles;
  if (element == Element::F64) result.rounding = modifiers.takeRounding();
  require(result.rounding == Rounding::None || isDirection(result.rounding), instruction);
  if (element == Element::B1) {
    product.conjunction = modifiers.take("and");
    require((product.conjunction || modifiers.take("xor")) && modifiers.take("popc"), instruction);
    product.depth /= 32;
  }
  if (product.quads) product.rows = 32;
  return result;
}

void Lowerer::placeFragment(const Instruction& instruction, std::size_t index,
                            const FragmentShape& shape, Fragment& fragment) {
  const std::size_t registers = operand(instruction, index).elements.size();
  const unsigned wanted = registersOf(shape, fragment.element);
  const bool repeats = shape.arrangement == Arrangement::Linear && shape.role != Role::Sum &&
                       registers <= Fragment::kRegisters && registers % wanted == 0;
  if (registers == 0 || (registers != wanted && !repeats))
    malformed(instruction, "a fragment has not so many registers");
  fragment = fragmentOf(shape, fragment.element, static_cast<unsigned>(registers));
}

void Lowerer::matrixProduct(const Instruction& instruction, Modifiers& modifiers, bool fragments) {
  Multiplication how = takeMultiplication(instruction, modifiers, fragments);
  MatrixProduct& product = how.product;
  const unsigned rows = product.rows, columns = product.columns, depth = product.depth;
  const unsigned columnsOfB = product.quads ? 4 * columns : columns;
  const FragmentShape sums{how.arrangement, Role::Sum, rows, columns};
  placeFragment(instruction, 1, {how.arrangement, Role::A, rows, depth, how.columnMajorA},
                product.a);
  placeFragment(instruction, 2, {how.arrangement, Role::B, depth, columnsOfB, how.columnMajorB},
                product.b);
  placeFragment(instruction, 3, sums, product.c);
  placeFragment(instruction, 0, sums, product.d);
  const Operation operands[] = {
      carrier(instruction, operand(instruction, 1), product.a.element, false),
      carrier(instruction, operand(instruction, 2), product.b.element, false),
      carrier(instruction, operand(instruction, 3), product.c.element, false),
      carrier(instruction, operand(instruction, 0), product.d.element, true)};
  converge(instruction);
  Operation op = begin(instruction, Form{.op = Op::MultiplyMatrices});
  if (how.rounding > Rounding::Nearest) {
    op.inner = std::exchange(op.run, withRounding);
    op.detail = environmentFor(how.rounding, false);
  }
  op.target = productNumber(product);
  emit(op);
  for (const Operation& each : operands) emit(each);
}

void Lowerer::matrix(const Instruction& instruction, Modifiers& modifiers) {
  if (modifiers.opcode() == "mma") return matrixProduct(instruction, modifiers, false);
  if (modifiers.take("load")) return matrixAccess(instruction, modifiers, true);
  if (modifiers.take("store")) return matrixAccess(instruction, modifiers, false);
  require(modifiers.take("mma"), instruction);
  matrixProduct(instruction, modifiers, true);
}

/// ldmatrix and stmatrix.
void Lowerer::matrixRows(const Instruction& instruction, Modifiers& modifiers) {
  const bool loads = modifiers.opcode() == "ldmatrix";
  require(modifiers.take("sync") && modifiers.take("aligned") && modifiers.take("m8n8") &&
              modifiers.take("b16"),
          instruction);
  const unsigned count = modifiers.take("x1")   ? 1
                         : modifiers.take("x2") ? 2
                         : modifiers.take("x4") ? 4
                                                : 0;
  const Operand& registers = operand(instruction, loads ? 0 : 1);
  require(count != 0 && registers.elements.size() == count, instruction);
  const bool transposed = modifiers.take("trans");
  Operation op;
  guard(op, instruction);
  const Space space =
      addressOperand(op, instruction, operand(instruction, loads ? 1 : 0), modifiers.takeSpace());
  require(space == Space::Shared || space == Space::Generic, instruction);
  for (unsigned i = 0; i < count; ++i) {
    const Operand& element = registers.elements[i];
    if (loads)
      define(op, i, destination(instruction, element, Type::B32));
    else
      use(op, i, source(instruction, element, Type::B32));
  }
  op.run = laneKernel({.op = loads ? Op::LoadMatrixRows : Op::StoreMatrixRows, .space = space});
  op.width = static_cast<std::uint8_t>(count);
  op.detail = transposed;
  converge(instruction);
  emit(op);
}

void Lowerer::transposeMatrix(const Instruction& instruction, Modifiers& modifiers) {
  for (const char* word : {"sync", "aligned", "m8n8", "trans", "b16"})
    require(modifiers.take(word), instruction);
  Operation op = begin(instruction, Form{.op = Op::TransposeMatrix});
  use(op, 1, source(instruction, operand(instruction, 1), Type::B32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  converge(instruction);
  emit(op);
}

}  // namespace simulator::ptx
