// tex, tld4, txq, suld, sust, sured, suq. Handles are those of texture and surface objects; a
// variable of type .texref or .surfref holds one.
#include <bit>

#include "native/simulator/ptx/machine/texture.h"
#include "native/simulator/ptx/program/legality.h"
#include "native/simulator/ptx/program/lowerer.h"

namespace simulator::ptx {
namespace {

constexpr std::pair<std::string_view, Geometry> kGeometries[] = {
    {"1d", Geometry::d1},      {"2d", Geometry::d2},   {"3d", Geometry::d3},
    {"a1d", Geometry::a1d},    {"a2d", Geometry::a2d}, {"cube", Geometry::cube},
    {"acube", Geometry::acube}};

bool takeGeometry(Modifiers& modifiers, Geometry& geometry) {
  constexpr auto kNone = static_cast<Geometry>(255);
  geometry = modifiers.takeFirst<Geometry>(kGeometries, kNone);
  return geometry != kNone;
}

/// An address in brackets: the handle, and maybe coordinates.
bool isImageOperand(const Operand& operand, std::size_t elements) {
  return operand.kind == Operand::Kind::Address && operand.elements.size() == elements;
}

}  // namespace

Slot Lowerer::imageHandle(const Instruction& instruction, const Operand& operand) {
  if (operand.kind == Operand::Kind::Register) return source(instruction, operand, Type::U64);
  Operation op =
      begin(instruction,
            Form{.op = Op::Load, .type = Type::B64, .space = Space::Global, .sourceBytes = 8});
  op.guard = Operation::kNoGuard;
  op.width = 1;
  op.flags |= Operation::kHasAddress | Operation::kWideAddress;
  op.target = static_cast<std::uint32_t>(code_.operations.size());
  use(op, Operation::kAddress, address(instruction, operand));
  const Slot result = temporary(Type::B64);
  define(op, 0, result);
  emit(op);
  return result;
}

/// Brings `count` components of a vector, or a single operand, to rows of Warp::staged.
void Lowerer::stage(const Instruction& instruction, const Operand& operand, unsigned first,
                    unsigned count, Type type) {
  const bool vector = operand.kind == Operand::Kind::Vector;
  if ((vector ? operand.elements.size() : 1) < count)
    malformed(instruction, "a vector has too few components");
  Operation op = begin(instruction, stageOperands);
  op.detail = first;
  op.width = static_cast<std::uint8_t>(count);
  for (unsigned i = 0; i < count; ++i)
    use(op, i, source(instruction, vector ? operand.elements[i] : operand, type));
  emit(op);
}

/// The layer, which is a whole number, then the point.
void Lowerer::stageCoordinates(const Instruction& instruction, const Operand& operand,
                               Geometry geometry, Type type) {
  const unsigned dimensions = dimensionsOf(geometry);
  if (!isLayered(geometry)) return stage(instruction, operand, kStagedPoint, dimensions, type);
  if (operand.kind != Operand::Kind::Vector || operand.elements.empty())
    malformed(instruction, "a layered image has coordinates in braces");
  stage(instruction, operand.elements.front(), kStagedLayer, 1, Type::U32);
  Operand point = operand;
  point.elements.erase(point.elements.begin());
  stage(instruction, point, kStagedPoint, dimensions, type);
}

void Lowerer::defineFetched(Operation& op, const Instruction& instruction, Type type,
                            unsigned count) {
  const Operand& results = operand(instruction, 0);
  if (results.kind != Operand::Kind::Vector || results.elements.size() != count)
    unsupported(instruction);
  for (unsigned i = 0; i < count; ++i)
    define(op, i, destination(instruction, results.elements[i], type));
}

void Lowerer::texture(const Instruction& instruction, Modifiers& modifiers) {
  TextureFetch fetch;
  if (modifiers.opcode() == "tld4") {
    constexpr std::pair<std::string_view, int> kChannels[] = {
        {"r", 0}, {"g", 1}, {"b", 2}, {"a", 3}};
    const int channel = modifiers.takeFirst<int>(kChannels, -1);
    require(channel >= 0, instruction);
    fetch.gathers = true;
    fetch.channel = static_cast<std::uint8_t>(channel);
  } else if (modifiers.take("level")) {
    fetch.level = LevelOf::given;
  } else if (modifiers.take("grad")) {
    fetch.level = LevelOf::gradients;
  } else {
    modifiers.take("base");
  }
  require(takeGeometry(modifiers, fetch.geometry), instruction);
  const unsigned count = modifiers.take("v2") ? 2 : modifiers.take("v4") ? 4 : 0;
  const Type type = modifiers.takeType(), coordinate = modifiers.takeType();
  if (type == Type::F16 && count == 4) fetch.results = TextureFetch::Results::halves;
  if (type == Type::F16x2 && count == 2) fetch.results = TextureFetch::Results::pairs;
  const bool words = isOneOf(type, {Type::U32, Type::S32, Type::F32}) && count == 4;
  const bool whole = coordinate == Type::S32;
  require(words || fetch.results != TextureFetch::Results::words, instruction);
  require(coordinate == Type::F32 || (whole && !isCube(fetch.geometry) && !fetch.gathers &&
                                      fetch.level != LevelOf::gradients),
          instruction);
  require(!fetch.gathers || isCube(fetch.geometry) || dimensionsOf(fetch.geometry) == 2,
          instruction);
  fetch.wholeCoordinates = whole;
  const Operand& image = operand(instruction, 1);
  const std::size_t operands = fetch.level == LevelOf::base    ? 2
                               : fetch.level == LevelOf::given ? 3
                                                               : 4;
  require(isImageOperand(image, 2) && instruction.operands.size() == operands, instruction);
  const Slot handle = imageHandle(instruction, image.elements[0]);
  stageCoordinates(instruction, image.elements[1], fetch.geometry, coordinate);
  if (fetch.level == LevelOf::given)
    stage(instruction, operand(instruction, 2), kStagedLevel, 1, coordinate);
  if (fetch.level == LevelOf::gradients) {
    const unsigned dimensions = dimensionsOf(fetch.geometry);
    stage(instruction, operand(instruction, 2), kStagedDx, dimensions, Type::F32);
    stage(instruction, operand(instruction, 3), kStagedDy, dimensions, Type::F32);
  }
  Operation op = begin(instruction, fetchTexture);
  op.immediate = std::bit_cast<std::int64_t>(fetch);
  use(op, Operation::kAddress, handle);
  defineFetched(op, instruction,
                fetch.results == TextureFetch::Results::halves ? Type::B16 : Type::B32, count);
  emit(op);
}

void Lowerer::imageQuery(const Instruction& instruction, Modifiers& modifiers) {
  constexpr std::pair<std::string_view, ImageQuery> kQueries[] = {
      {"width", ImageQuery::width},
      {"height", ImageQuery::height},
      {"depth", ImageQuery::depth},
      {"array_size", ImageQuery::layers},
      {"num_mipmap_levels", ImageQuery::levels},
      {"normalized_coords", ImageQuery::normalized},
      {"num_samples", ImageQuery::samples}};
  constexpr auto kNone = static_cast<ImageQuery>(255);
  const bool level = modifiers.take("level");
  const ImageQuery query = modifiers.takeFirst<ImageQuery>(kQueries, kNone);
  const Operand& image = operand(instruction, 1);
  require(query != kNone && modifiers.take("b32") && isImageOperand(image, 1), instruction);
  const Slot handle = imageHandle(instruction, image.elements[0]);
  Operation op = begin(instruction, queryImage);
  op.detail = static_cast<std::uint32_t>(query);
  op.width = modifiers.opcode() == "suq" ? 1 : 0;
  require(op.width == 0 || (!level && query <= ImageQuery::layers), instruction);
  use(op, Operation::kAddress, handle);
  if (level) use(op, 1, source(instruction, operand(instruction, 2), Type::U32));
  define(op, 0, destination(instruction, operand(instruction, 0), Type::B32));
  emit(op);
}

SurfaceAccess Lowerer::takeSurfaceAccess(const Instruction& instruction, Modifiers& modifiers) {
  using Beyond = SurfaceAccess::Beyond;
  constexpr std::pair<std::string_view, Beyond> kBeyond[] = {
      {"trap", Beyond::trap}, {"clamp", Beyond::clamp}, {"zero", Beyond::zero}};
  SurfaceAccess access;
  access.kind = modifiers.opcode() == "suld"   ? SurfaceAccess::Kind::load
                : modifiers.opcode() == "sust" ? SurfaceAccess::Kind::store
                                               : SurfaceAccess::Kind::reduce;
  access.formatted = modifiers.take("p");
  require(access.formatted != modifiers.take("b"), instruction);
  require(takeGeometry(modifiers, access.geometry) && !isCube(access.geometry), instruction);
  access.beyond = modifiers.takeFirst<Beyond>(kBeyond, Beyond::trap);
  access.elements = modifiers.take("v2") ? 2 : modifiers.take("v4") ? 4 : 1;
  modifiers.takeMemoryHints();
  return access;
}

/// The operand with handle and coordinates.
void Lowerer::surfacePlace(Operation& op, const Instruction& instruction, const Operand& image,
                           Geometry geometry) {
  require(isImageOperand(image, 2), instruction);
  use(op, Operation::kAddress, imageHandle(instruction, image.elements[0]));
  const Operand& given = image.elements[1];
  const bool vector = given.kind == Operand::Kind::Vector;
  const unsigned count = dimensionsOf(geometry) + (isLayered(geometry) ? 1 : 0);
  if ((vector ? given.elements.size() : 1) < count)
    malformed(instruction, "a vector has too few components");
  for (unsigned i = 0; i < count; ++i)
    use(op, 5 + i, source(instruction, vector ? given.elements[i] : given, Type::S32));
}

void Lowerer::surface(const Instruction& instruction, Modifiers& modifiers) {
  SurfaceAccess access = takeSurfaceAccess(instruction, modifiers);
  const bool loads = access.kind == SurfaceAccess::Kind::load;
  const Type type = modifiers.takeType();
  require(access.formatted ? !loads && bytesOf(type) == 4
                           : isOneOf(type, {Type::B8, Type::B16, Type::B32, Type::B64}),
          instruction);
  const Operand& value = operand(instruction, loads ? 0 : 1);
  const bool vector = value.kind == Operand::Kind::Vector;
  require((vector ? value.elements.size() : 1) == access.elements, instruction);
  access.bytes = static_cast<std::uint8_t>(bytesOf(type));
  Operation op = begin(instruction, accessSurface);
  surfacePlace(op, instruction, operand(instruction, loads ? 1 : 0), access.geometry);
  for (unsigned i = 0; i < access.elements; ++i) {
    const Operand& element = vector ? value.elements[i] : value;
    const unsigned bytes = registerBytes(element, type);
    if (i > 0 && bytes != access.registerBytes)
      malformed(instruction, "the registers of a vector differ in size");
    access.registerBytes = static_cast<std::uint8_t>(bytes);
    const Type as = bytes == 2 ? Type::B16 : bytes == 4 ? Type::B32 : Type::B64;
    if (loads) {
      define(op, i, destination(instruction, element, as));
    } else {
      use(op, i, source(instruction, element, as));
    }
  }
  op.immediate = std::bit_cast<std::int64_t>(access);
  emit(op);
}

void Lowerer::surfaceReduction(const Instruction& instruction, Modifiers& modifiers) {
  constexpr std::pair<std::string_view, SurfaceReduction> kOperations[] = {
      {"add", SurfaceReduction::add},
      {"and", SurfaceReduction::bitAnd},
      {"or", SurfaceReduction::bitOr},
      {"min", SurfaceReduction::minimum},
      {"max", SurfaceReduction::maximum}};
  constexpr auto kNone = static_cast<SurfaceReduction>(255);
  SurfaceAccess access = takeSurfaceAccess(instruction, modifiers);
  SurfaceReduction reduction = modifiers.takeFirst<SurfaceReduction>(kOperations, kNone);
  const Type type = modifiers.takeType();
  const bool bits = reduction == SurfaceReduction::bitAnd || reduction == SurfaceReduction::bitOr;
  require(reduction != kNone && access.elements == 1 &&
              (isOneOf(type, {Type::B32, Type::B64})
                   ? bits || access.formatted
                   : !bits && isOneOf(type, {Type::U32, Type::S32, Type::U64, Type::S64})),
          instruction);
  if (isSigned(type) && reduction == SurfaceReduction::minimum)
    reduction = SurfaceReduction::minimumSigned;
  if (isSigned(type) && reduction == SurfaceReduction::maximum)
    reduction = SurfaceReduction::maximumSigned;
  access.reduction = static_cast<std::uint8_t>(reduction);
  access.bytes = static_cast<std::uint8_t>(bytesOf(type));
  Operation op = begin(instruction, accessSurface);
  surfacePlace(op, instruction, operand(instruction, 0), access.geometry);
  use(op, 0, source(instruction, operand(instruction, 1), type));
  op.immediate = std::bit_cast<std::int64_t>(access);
  emit(op);
}

}  // namespace simulator::ptx
