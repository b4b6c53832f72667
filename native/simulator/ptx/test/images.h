// Images of floats and bytes for the tests of textures and surfaces.
#pragma once

#include "native/simulator/ptx/test/harness.h"

namespace test {

inline constexpr std::uint64_t kHandle = 77;

inline simulator::Image imageOf(std::uint64_t address, simulator::ImageShape shape,
                                CUarray_format format, std::uint32_t width, std::uint32_t height,
                                std::uint32_t depth) {
  simulator::Image image;
  image.shape = shape;
  image.format = *simulator::formatOf(format);
  const std::size_t row = std::size_t{width} * image.elementBytes();
  image.levels = {{address, width, height, depth, row, row * height}};
  return image;
}

/// 4 x 2 x 2 floats: 0, 1, 2, …
struct Volume {
  explicit Volume(Module& module, simulator::ImageShape shape = simulator::ImageShape::d3)
      : texels(module.memory, 16) {
    for (std::size_t i = 0; i < 16; ++i) texels[i] = static_cast<float>(i);
    const bool flat = shape == simulator::ImageShape::d1 || shape == simulator::ImageShape::linear;
    image = imageOf(texels.address(), shape, CU_AD_FORMAT_FLOAT, flat ? 16 : 4, flat ? 1 : 2,
                    flat ? 1 : 2);
  }
  Buffer<float> texels;
  simulator::Image image;
};

}  // namespace test
