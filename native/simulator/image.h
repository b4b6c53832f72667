// Images, which kernels read through textures and access through surfaces: what the driver tells
// the engine about them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/image_format.h"

namespace simulator {

/// Layers and faces of cubes count as depth. `linear` is memory with one index.
enum class ImageShape : std::uint8_t {
  d1,
  d2,
  d3,
  layered1d,
  layered2d,
  cubemap,
  layeredCubemap,
  linear
};

constexpr bool isCubemap(ImageShape shape) {
  return shape == ImageShape::cubemap || shape == ImageShape::layeredCubemap;
}

struct ImageLevel {
  std::uint64_t address = 0;
  std::uint32_t width = 1, height = 1, depth = 1;  ///< in elements
  std::size_t rowBytes = 0, layerBytes = 0;        ///< from one row or layer to the next
};

struct Image {
  ImageShape shape = ImageShape::d1;
  ImageFormat format{};
  unsigned channels = 1;
  std::vector<ImageLevel> levels;
  /// Linear memory that the program may free before a kernel reads it, so accesses are checked.
  bool inMemory = false;

  unsigned elementBytes() const { return format.bytes * channels; }
};

/// CUDA_TEXTURE_DESC, in the engine's terms.
struct Sampler {
  std::array<CUaddress_mode, 3> address{};
  CUfilter_mode filter{}, mipmapFilter{};
  bool integers = false;  ///< CU_TRSF_READ_AS_INTEGER
  bool normalizedCoordinates = false;
  bool srgb = false;
  bool seamless = false;  ///< at the edges of cubes
  float levelBias = 0, lowestLevel = 0, highestLevel = 0;
  std::array<float, 4> border{};
};

struct Texture {
  Image image;
  Sampler sampler;
};

/// The live objects by handle. Immutable, so a launch needs no lock.
struct Images {
  std::unordered_map<std::uint64_t, Texture> textures;
  std::unordered_map<std::uint64_t, Image> surfaces;
};

}  // namespace simulator
