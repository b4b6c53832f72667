// Operations on textures and surfaces. What they do besides their operands is in
// Operation::immediate.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/sampling.h"
#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

/// Copies the sources, in slots 0 to `width` - 1, to Warp::staged from row `detail` on. A fetch has
/// more operands than an operation has slots.
const Operation* stageOperands(Warp& w, const Operation* op, std::uint32_t mask);

/// Rows of Warp::staged.
inline constexpr unsigned kStagedLayer = 0, kStagedPoint = 1, kStagedLevel = 4, kStagedDx = 4,
                          kStagedDy = 7;

struct TextureFetch {
  enum class Results : std::uint8_t { words, halves, pairs };
  Geometry geometry = Geometry::d1;
  LevelOf level = LevelOf::base;
  Results results = Results::words;
  bool wholeCoordinates = false;
  bool gathers = false;
  std::uint8_t channel = 0;  ///< that is gathered
  std::uint8_t unused[2] = {};
};
static_assert(sizeof(TextureFetch) == sizeof(std::int64_t));

/// Slots 0 to 3: results; kAddress: the handle. The coordinates are staged.
const Operation* fetchTexture(Warp& w, const Operation* op, std::uint32_t mask);

struct SurfaceAccess {
  enum class Kind : std::uint8_t { load, store, reduce };
  enum class Beyond : std::uint8_t { trap, clamp, zero };
  Kind kind = Kind::load;
  Geometry geometry = Geometry::d1;
  Beyond beyond = Beyond::trap;
  bool formatted = false;     ///< .p: coordinates count elements, which are converted
  std::uint8_t elements = 1;  ///< of the vector
  std::uint8_t bytes = 4;     ///< of one
  std::uint8_t registerBytes = 4;
  std::uint8_t reduction = 0;  ///< a SurfaceReduction
};
static_assert(sizeof(SurfaceAccess) == sizeof(std::int64_t));

enum class SurfaceReduction : std::uint8_t {
  add,
  bitAnd,
  bitOr,
  minimumSigned,
  minimum,
  maximumSigned,
  maximum
};

/// Slots 0 to 3: values; kAddress: the handle; 5 to 7: the coordinates as PTX orders them.
const Operation* accessSurface(Warp& w, const Operation* op, std::uint32_t mask);

enum class ImageQuery : std::uint8_t { width, height, depth, layers, levels, normalized, samples };

/// Slot 0: result; kAddress: the handle; 1: the level, if any. `detail`: the ImageQuery; `width`: 1
/// for surfaces.
const Operation* queryImage(Warp& w, const Operation* op, std::uint32_t mask);

}  // namespace simulator::ptx
