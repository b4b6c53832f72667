#include "native/simulator/ptx/machine/sampling.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "native/simulator/ptx/machine/half.h"

namespace simulator::ptx {
namespace {

constexpr double kFraction = 256;  ///< weights of filters have 8 bits of fraction

/// The coordinate in units of 1/256, rounded; far coordinates and NaN stay representable.
std::int64_t fixedPoint(double coordinate) {
  if (std::isnan(coordinate)) return 0;
  return static_cast<std::int64_t>(
      std::floor(std::clamp(coordinate, -0x1p40, 0x1p40) * kFraction + 0.5));
}

std::int64_t wholePart(float coordinate) {
  if (std::isnan(coordinate)) return 0;
  return static_cast<std::int64_t>(
      std::floor(std::clamp(static_cast<double>(coordinate), -0x1p40, 0x1p40)));
}

/// CUDA defines wrap and mirror by the fraction of the coordinate. Far from 0 the product with the
/// size would not have it any more.
float inFirstPeriod(float coordinate, CUaddress_mode mode) {
  if (!std::isfinite(coordinate)) return coordinate;
  if (mode == CU_TR_ADDRESS_MODE_WRAP) return coordinate - std::floor(coordinate);
  if (mode == CU_TR_ADDRESS_MODE_MIRROR) return coordinate - 2 * std::floor(coordinate / 2);
  return coordinate;
}

std::array<std::int64_t, 3> extents(const ImageLevel& level) {
  return {level.width, level.height, level.depth};
}

double linearFromSrgb(double value) {
  return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4);
}

/// The inverse of faceOf().
std::array<double, 3> directionOf(unsigned face, double s, double t) {
  switch (face) {
    case 0: return {1, -t, -s};
    case 1: return {-1, -t, s};
    case 2: return {s, 1, t};
    case 3: return {s, -1, -t};
    case 4: return {s, -t, 1};
    default: return {-s, -t, -1};
  }
}

/// The weights of four texels in 1/256: x, y and the layer's part multiplied. As on an H200, the
/// product of all is rounded, and the others keep the sums of rows and columns.
std::array<std::int64_t, 4> cornerWeights(std::int64_t x, std::int64_t y, std::int64_t part) {
  const std::int64_t right = (x * part + 128) >> 8, lower = (y * part + 128) >> 8;
  const std::int64_t both =
      std::max((x * y * part + 0x8000) >> 16, std::max<std::int64_t>(right + lower - part, 0));
  return {part - right - lower + both, right - both, lower - both, both};
}

std::uint32_t wordOf(float value) { return std::bit_cast<std::uint32_t>(value); }

}  // namespace

CubePoint faceOf(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  if (ax >= ay && ax >= az)
    return x >= 0 ? CubePoint{0, -z / ax, -y / ax} : CubePoint{1, z / ax, -y / ax};
  if (ay >= az) return y >= 0 ? CubePoint{2, x / ay, z / ay} : CubePoint{3, x / ay, -z / ay};
  return z >= 0 ? CubePoint{4, x / az, -y / az} : CubePoint{5, -x / az, -y / az};
}

bool Sampling::integers() const {
  const ImageFormat& format = texture_.image.format;
  return format.kind != ImageFormat::Kind::floatingPoint && !format.normalized &&
         (texture_.sampler.integers || format.bytes == 4);
}

/// Wrap and mirror exist for normalized coordinates only; memory has no address modes.
CUaddress_mode Sampling::addressMode(unsigned axis) const {
  if (texture_.image.shape == ImageShape::linear) return CU_TR_ADDRESS_MODE_BORDER;
  if (isCube(geometry_)) return CU_TR_ADDRESS_MODE_CLAMP;
  const CUaddress_mode mode = texture_.sampler.address[axis];
  const bool repeats = mode == CU_TR_ADDRESS_MODE_WRAP || mode == CU_TR_ADDRESS_MODE_MIRROR;
  return repeats && !texture_.sampler.normalizedCoordinates ? CU_TR_ADDRESS_MODE_CLAMP : mode;
}

std::uint32_t Sampling::layerOf(const ImageLevel& level, std::uint32_t layer) const {
  return std::min(layer, level.depth - 1);
}

Sampling::Place Sampling::project(const SamplePoint& point, const ImageLevel& level) const {
  Place place;
  if (isCube(geometry_)) {
    const CubePoint on = faceOf(point.at[0], point.at[1], point.at[2]);
    const auto edge = static_cast<float>(level.width);
    place.at = {(on.s + 1) / 2 * edge, (on.t + 1) / 2 * edge, 0};
    const std::uint32_t cubes = std::max(level.depth / 6, 1u);
    place.layer = std::min(point.layer, cubes - 1) * 6 + on.face;
    place.dimensions = 2;
    return place;
  }
  place.dimensions = dimensionsOf(geometry_);
  if (isLayered(geometry_)) place.layer = layerOf(level, point.layer);
  const auto size = extents(level);
  for (unsigned axis = 0; axis < place.dimensions; ++axis)
    place.at[axis] =
        texture_.sampler.normalizedCoordinates
            ? inFirstPeriod(point.at[axis], addressMode(axis)) * static_cast<float>(size[axis])
            : point.at[axis];
  return place;
}

Sampling::Texel Sampling::wrap(const ImageLevel& level, std::array<std::int64_t, 3> index,
                               const Place& place) const {
  Texel texel;
  const auto size = extents(level);
  for (unsigned axis = 0; axis < place.dimensions; ++axis) {
    std::int64_t& i = index[axis];
    const std::int64_t n = size[axis];
    switch (addressMode(axis)) {
      case CU_TR_ADDRESS_MODE_WRAP: i = (i % n + n) % n; break;
      case CU_TR_ADDRESS_MODE_MIRROR:
        i = (i % (2 * n) + 2 * n) % (2 * n);
        i = std::min(i, 2 * n - 1 - i);
        break;
      case CU_TR_ADDRESS_MODE_BORDER: texel.border |= i < 0 || i >= n; break;
      default: i = std::clamp<std::int64_t>(i, 0, n - 1); break;
    }
    texel.index[axis] = i;
  }
  if (place.dimensions < 3) texel.index[2] = place.layer;
  return texel;
}

/// The channels as they are stored, widened to words.
Words Sampling::raw(const ImageLevel& level, const Texel& texel) {
  const Image& image = texture_.image;
  Words words{};
  const auto& [x, y, z] = texel.index;
  const std::uint64_t address = level.address + static_cast<std::uint64_t>(z) * level.layerBytes +
                                static_cast<std::uint64_t>(y) * level.rowBytes +
                                static_cast<std::uint64_t>(x) * image.elementBytes();
  if (image.inMemory && !memory_.contains(address, image.elementBytes())) {
    failed_ = true;
    return words;
  }
  for (unsigned channel = 0; channel < image.channels; ++channel) {
    std::memcpy(&words[channel],
                reinterpret_cast<const std::byte*>(address) + channel * image.format.bytes,
                image.format.bytes);
    if (image.format.kind != ImageFormat::Kind::signedInteger) continue;
    const unsigned shift = 32 - 8 * image.format.bytes;
    words[channel] =
        static_cast<std::uint32_t>(static_cast<std::int32_t>(words[channel] << shift) >> shift);
  }
  return words;
}

/// A channel as a number: integers become 0 to 1, or -1 to 1.
double Sampling::value(std::uint32_t word, unsigned channel) const {
  const ImageFormat& format = texture_.image.format;
  switch (format.kind) {
    case ImageFormat::Kind::unsignedInteger: {
      const double scaled = word / (format.bytes == 1 ? 255.0 : 65535.0);
      const bool srgb = texture_.sampler.srgb && format.bytes == 1 && channel < 3;
      return srgb ? linearFromSrgb(scaled) : scaled;
    }
    case ImageFormat::Kind::signedInteger:
      return std::max(static_cast<std::int32_t>(word) / (format.bytes == 1 ? 127.0 : 32767.0),
                      -1.0);
    default: break;
  }
  return format.bytes == 2 ? halfToFloat(static_cast<std::uint16_t>(word))
                           : std::bit_cast<float>(word);
}

/// The texel as an instruction gives it without a filter.
Words Sampling::read(const ImageLevel& level, const std::array<std::int64_t, 3>& index,
                     const Place& place) {
  const Texel texel = wrap(level, index, place);
  const Image& image = texture_.image;
  if (texel.border && image.shape == ImageShape::linear) return {};
  const bool whole = integers();
  Words words = texel.border ? Words{} : raw(level, texel);
  for (unsigned channel = 0; channel < 4; ++channel) {
    std::uint32_t& word = words[channel];
    if (channel >= image.channels) {
      word = channel < 3 ? 0 : whole ? 1 : wordOf(1);
    } else if (texel.border) {
      word = wordOf(texture_.sampler.border[channel]);
    } else if (!whole && !(image.format.kind == ImageFormat::Kind::floatingPoint &&
                           image.format.bytes == 4)) {
      word = wordOf(static_cast<float>(value(word, channel)));
    }
  }
  return words;
}

Sampling::Colour Sampling::colour(const ImageLevel& level, const std::array<std::int64_t, 3>& index,
                                  const Place& place) {
  const auto outside = [&](unsigned axis) {
    return index[axis] < 0 || index[axis] >= static_cast<std::int64_t>(level.width);
  };
  if (isCube(geometry_) && texture_.sampler.seamless && (outside(0) || outside(1)))
    return acrossEdges(level, index, place);
  const Texel texel = wrap(level, index, place);
  const Words words = texel.border ? Words{} : raw(level, texel);
  Colour result{0, 0, 0, 1};
  for (unsigned channel = 0; channel < texture_.image.channels; ++channel)
    result[channel] =
        texel.border ? texture_.sampler.border[channel] : value(words[channel], channel);
  return result;
}

/// A texel beyond the edge of a face: the nearest one of the face behind the edge. Behind a corner
/// there is none, so the three around it give their mean.
Sampling::Colour Sampling::acrossEdges(const ImageLevel& level,
                                       const std::array<std::int64_t, 3>& index,
                                       const Place& place) {
  const auto n = static_cast<std::int64_t>(level.width);
  const std::int64_t i = std::clamp<std::int64_t>(index[0], 0, n - 1),
                     j = std::clamp<std::int64_t>(index[1], 0, n - 1);
  if (i != index[0] && j != index[1]) {
    Colour mean{};
    for (const auto& each :
         {colour(level, {i, j, 0}, place), colour(level, {index[0], j, 0}, place),
          colour(level, {i, index[1], 0}, place)}) {
      for (unsigned channel = 0; channel < 4; ++channel) mean[channel] += each[channel] / 3;
    }
    return mean;
  }
  const double edge = static_cast<double>(n);
  const auto direction =
      directionOf(place.layer % 6, (2.0 * static_cast<double>(index[0]) + 1) / edge - 1,
                  (2.0 * static_cast<double>(index[1]) + 1) / edge - 1);
  const CubePoint on = faceOf(static_cast<float>(direction[0]), static_cast<float>(direction[1]),
                              static_cast<float>(direction[2]));
  Place there = place;
  there.layer = place.layer / 6 * 6 + on.face;
  const auto texelAt = [&](float s) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>((s + 1) / 2 * edge), 0, n - 1);
  };
  return colour(level, {texelAt(on.s), texelAt(on.t), 0}, there);
}

Words Sampling::nearestWords(const ImageLevel& level, const SamplePoint& point) {
  const Place place = project(point, level);
  return read(level, {wholePart(place.at[0]), wholePart(place.at[1]), wholePart(place.at[2])},
              place);
}

Sampling::Colour Sampling::nearest(const ImageLevel& level, const SamplePoint& point) {
  const Place place = project(point, level);
  return colour(level, {wholePart(place.at[0]), wholePart(place.at[1]), wholePart(place.at[2])},
                place);
}

/// A filter over one dimension with the border's colour also weighs a row above the image: the GPU
/// filters over two dimensions at y = 0.
unsigned Sampling::filteredDimensions(const Place& place) const {
  return geometry_ == Geometry::d1 && addressMode(1) == CU_TR_ADDRESS_MODE_BORDER
             ? 2
             : place.dimensions;
}

Sampling::Colour Sampling::linear(const ImageLevel& level, const SamplePoint& point) {
  Place place = project(point, level);
  place.dimensions = filteredDimensions(place);
  std::array<std::int64_t, 3> first{}, second{};
  for (unsigned axis = 0; axis < place.dimensions; ++axis) {
    const std::int64_t fixed = fixedPoint(static_cast<double>(place.at[axis]) - 0.5);
    first[axis] = fixed >> 8;
    second[axis] = fixed & 255;
  }
  Colour sum{};
  for (unsigned layer = 0; layer < (place.dimensions == 3 ? 2u : 1u); ++layer) {
    const std::int64_t part = place.dimensions < 3 ? 256 : layer == 1 ? second[2] : 256 - second[2];
    const auto weights = cornerWeights(second[0], second[1], part);
    for (unsigned corner = 0; corner < 4; ++corner) {
      if (weights[corner] == 0) continue;
      const Colour texel = colour(
          level, {first[0] + (corner & 1), first[1] + (corner >> 1), first[2] + layer}, place);
      for (unsigned channel = 0; channel < 4; ++channel)
        sum[channel] += static_cast<double>(weights[corner]) / kFraction * texel[channel];
    }
  }
  return sum;
}

Sampling::Colour Sampling::filtered(const ImageLevel& level, const SamplePoint& point) {
  return texture_.sampler.filter == CU_TR_FILTER_MODE_LINEAR ? linear(level, point)
                                                             : nearest(level, point);
}

Words Sampling::finish(const Colour& colour) const {
  Words words;
  for (unsigned channel = 0; channel < 4; ++channel)
    words[channel] = wordOf(static_cast<float>(colour[channel]));
  return words;
}

Words Sampling::sample(const SamplePoint& point, LevelOf which) {
  const auto& levels = texture_.image.levels;
  const Sampler& sampler = texture_.sampler;
  const double level = levelFor(point, which);
  const auto nearestLevel = static_cast<std::size_t>(std::floor(level + 0.5));
  if (integers() || texture_.image.shape == ImageShape::linear)
    return nearestWords(levels[nearestLevel], point);
  const std::int64_t fixed = fixedPoint(level);
  const auto lower = static_cast<std::size_t>(fixed >> 8);
  const double weight = static_cast<double>(fixed & 255) / kFraction;
  if (sampler.mipmapFilter == CU_TR_FILTER_MODE_POINT || weight == 0) {
    const ImageLevel& chosen =
        levels[sampler.mipmapFilter == CU_TR_FILTER_MODE_POINT ? nearestLevel : lower];
    return sampler.filter == CU_TR_FILTER_MODE_POINT ? nearestWords(chosen, point)
                                                     : finish(filtered(chosen, point));
  }
  Colour sum = filtered(levels[lower], point);
  const Colour next = filtered(levels[lower + 1], point);
  for (unsigned channel = 0; channel < 4; ++channel)
    sum[channel] = (1 - weight) * sum[channel] + weight * next[channel];
  return finish(sum);
}

Words Sampling::texel(const SamplePoint& point, LevelOf which) {
  const ImageLevel& level =
      texture_.image.levels[static_cast<std::size_t>(std::floor(levelFor(point, which) + 0.5))];
  Place place;
  place.dimensions = dimensionsOf(geometry_);
  if (isLayered(geometry_)) place.layer = layerOf(level, point.layer);
  return read(level, {point.texel[0], point.texel[1], point.texel[2]}, place);
}

Words Sampling::gather(const SamplePoint& point, unsigned channel) {
  const ImageLevel& level =
      texture_.image.levels[static_cast<std::size_t>(levelFor(point, LevelOf::base))];
  const Place place = project(point, level);
  const std::int64_t i = fixedPoint(static_cast<double>(place.at[0]) - 0.5) >> 8,
                     j = fixedPoint(static_cast<double>(place.at[1]) - 0.5) >> 8;
  return {read(level, {i, j + 1, 0}, place)[channel],
          read(level, {i + 1, j + 1, 0}, place)[channel],
          read(level, {i + 1, j, 0}, place)[channel], read(level, {i, j, 0}, place)[channel]};
}

}  // namespace simulator::ptx
