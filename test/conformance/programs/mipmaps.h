// A mipmapped array for programs about mipmaps: each level has its own values.
#pragma once

#include "textures.h"

constexpr int kEdge = 32, kLevels = 6;

/// Texel (x, y) of a level.
inline float texelOf(int level, int x, int y) { return float(1000 * level + 7 * x + 3 * y); }

inline cudaMipmappedArray_t makeMipmaps() {
  cudaMipmappedArray_t mipmaps = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  EXPECT_OK(cudaMallocMipmappedArray(&mipmaps, &format, make_cudaExtent(kEdge, kEdge, 0), kLevels));
  for (int level = 0; level < kLevels; ++level) {
    cudaArray_t array = nullptr;
    cudaExtent extent{};
    const int edge = kEdge >> level;
    EXPECT_OK(cudaGetMipmappedArrayLevel(&array, mipmaps, level));
    EXPECT_OK(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
    EXPECT(int(extent.width) == edge && int(extent.height) == edge && extent.depth == 0);
    std::vector<float> values(edge * edge);
    for (int i = 0; i < edge * edge; ++i) values[i] = texelOf(level, i % edge, i / edge);
    EXPECT_OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), edge * 4, edge * 4, edge, cudaMemcpyHostToDevice));
  }
  return mipmaps;
}

inline cudaResourceDesc resourceOf(cudaMipmappedArray_t mipmaps) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeMipmappedArray;
  resource.res.mipmap.mipmap = mipmaps;
  return resource;
}

inline cudaTextureDesc mipmapDescription(cudaTextureFilterMode filter) {
  Settings settings{cudaAddressModeClamp, cudaFilterModePoint};
  settings.normalized = true;
  cudaTextureDesc description = describe(settings);
  description.mipmapFilterMode = filter;
  description.maxMipmapLevelClamp = kLevels - 1;
  return description;
}

struct LevelPoint {
  float x, y, level;
};

/// The texel of one level at normalized coordinates.
inline float pointOn(int level, float x, float y) {
  const int edge = kEdge >> level;
  return texelOf(level, std::min(int(x * edge), edge - 1), std::min(int(y * edge), edge - 1));
}
