// Which level of a mipmapped image a fetch reads.
#include <algorithm>
#include <cmath>

#include "native/simulator/ptx/machine/sampling.h"

namespace simulator::ptx {
namespace {

using Vector = std::array<double, 3>;

/// The derivative of the coordinates on the face of a cube, in parts of the face's edge.
Vector onFace(const std::array<float, 3>& at, const std::array<float, 3>& change) {
  constexpr float kStep = 0x1p-10f;
  const CubePoint from = faceOf(at[0], at[1], at[2]);
  const CubePoint to =
      faceOf(at[0] + change[0] * kStep, at[1] + change[1] * kStep, at[2] + change[2] * kStep);
  if (to.face != from.face) return {change[0], change[1], change[2]};
  return {(to.s - from.s) / (2 * kStep), (to.t - from.t) / (2 * kStep), 0};
}

double length(const Vector& vector, unsigned dimensions) {
  double squares = 0;
  for (unsigned axis = 0; axis < dimensions; ++axis) squares += vector[axis] * vector[axis];
  return std::sqrt(squares);
}

}  // namespace

double Sampling::levelFor(const SamplePoint& point, LevelOf which) const {
  const Sampler& sampler = texture_.sampler;
  double level = 0;
  if (which == LevelOf::given) level = static_cast<double>(point.level) + sampler.levelBias;
  if (which == LevelOf::gradients) {
    const ImageLevel& whole = texture_.image.levels.front();
    const Vector size{static_cast<double>(whole.width), static_cast<double>(whole.height),
                      static_cast<double>(whole.depth)};
    const unsigned dimensions = isCube(geometry_) ? 2 : dimensionsOf(geometry_);
    const auto inTexels = [&](const std::array<float, 3>& change) {
      Vector result =
          isCube(geometry_) ? onFace(point.at, change) : Vector{change[0], change[1], change[2]};
      for (unsigned axis = 0; axis < dimensions; ++axis) {
        if (sampler.normalizedCoordinates || isCube(geometry_)) result[axis] *= size[axis];
      }
      return length(result, dimensions);
    };
    level = std::log2(std::max(inTexels(point.dx), inTexels(point.dy))) + sampler.levelBias;
  }
  if (std::isnan(level)) level = 0;
  const double last = static_cast<double>(texture_.image.levels.size() - 1);
  level = std::max(level, static_cast<double>(sampler.lowestLevel));
  level = std::min(level, static_cast<double>(sampler.highestLevel));
  return std::clamp(level, 0.0, last);
}

}  // namespace simulator::ptx
