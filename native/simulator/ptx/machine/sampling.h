// The value of a texture at a point: addressing, filtering and conversion, as the CUDA C++
// Programming Guide's appendix on texture fetching defines them.
#pragma once

#include <array>
#include <cstdint>

#include "native/simulator/engine.h"

namespace simulator::ptx {

/// The shape of the coordinates, as the instruction spells it.
enum class Geometry : std::uint8_t { d1, d2, d3, a1d, a2d, cube, acube };

constexpr unsigned dimensionsOf(Geometry geometry) {
  return geometry == Geometry::d1 || geometry == Geometry::a1d   ? 1
         : geometry == Geometry::d2 || geometry == Geometry::a2d ? 2
                                                                 : 3;
}
constexpr bool isLayered(Geometry geometry) {
  return geometry == Geometry::a1d || geometry == Geometry::a2d || geometry == Geometry::acube;
}
constexpr bool isCube(Geometry geometry) {
  return geometry == Geometry::cube || geometry == Geometry::acube;
}

/// Which level of a mipmapped image is read.
enum class LevelOf : std::uint8_t { base, given, gradients };

struct SamplePoint {
  std::array<float, 3> at{};
  std::array<std::int32_t, 3> texel{};  ///< instead of `at`, for integer coordinates
  std::uint32_t layer = 0;
  float level = 0;
  std::array<float, 3> dx{}, dy{};
};

/// Four words: floats, or integers where the texture reads its elements as integers.
using Words = std::array<std::uint32_t, 4>;

class Sampling {
 public:
  Sampling(const Texture& texture, const AddressSpace& memory, Geometry geometry)
      : texture_(texture), memory_(memory), geometry_(geometry) {}

  Words sample(const SamplePoint& point, LevelOf level);
  Words texel(const SamplePoint& point, LevelOf level);  ///< at integer coordinates
  /// One channel of the four texels that a linear filter would use, counter-clockwise from the
  /// lower left one.
  Words gather(const SamplePoint& point, unsigned channel);
  /// Whether memory was read that is in no allocation.
  bool failed() const { return failed_; }

 private:
  using Colour = std::array<double, 4>;
  /// Coordinates on one layer, in elements.
  struct Place {
    std::array<float, 3> at{};
    std::uint32_t layer = 0;
    unsigned dimensions = 1;
  };
  struct Texel {
    std::array<std::int64_t, 3> index{};
    bool border = false;
  };

  bool integers() const;
  CUaddress_mode addressMode(unsigned axis) const;
  double levelFor(const SamplePoint& point, LevelOf level) const;
  Place project(const SamplePoint& point, const ImageLevel& level) const;
  std::uint32_t layerOf(const ImageLevel& level, std::uint32_t layer) const;
  /// The texel that an index names by the address mode of its axis.
  Texel wrap(const ImageLevel& level, std::array<std::int64_t, 3> index, const Place& place) const;
  Words raw(const ImageLevel& level, const Texel& texel);
  Words read(const ImageLevel& level, const std::array<std::int64_t, 3>& index, const Place& place);
  Colour colour(const ImageLevel& level, const std::array<std::int64_t, 3>& index,
                const Place& place);
  Colour acrossEdges(const ImageLevel& level, const std::array<std::int64_t, 3>& index,
                     const Place& place);
  double value(std::uint32_t word, unsigned channel) const;
  Colour nearest(const ImageLevel& level, const SamplePoint& point);
  unsigned filteredDimensions(const Place& place) const;
  Colour linear(const ImageLevel& level, const SamplePoint& point);
  Colour filtered(const ImageLevel& level, const SamplePoint& point);
  Words nearestWords(const ImageLevel& level, const SamplePoint& point);
  Words finish(const Colour& colour) const;

  const Texture& texture_;
  const AddressSpace& memory_;
  Geometry geometry_;
  bool failed_ = false;
};

/// The face of a cube that a direction names, and where on it: from -1 to 1.
struct CubePoint {
  unsigned face;
  float s, t;
};
CubePoint faceOf(float x, float y, float z);

}  // namespace simulator::ptx
