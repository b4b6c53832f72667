// The bias of a texture is added to levels that the program gives, before they are clamped.
// conformance: flags=--extended-lambda judges=itself
#include "mipmaps.h"

int main() {
  const cudaMipmappedArray_t mipmaps = makeMipmaps();
  for (const float bias : {1.0f, -2.0f}) {
    cudaTextureDesc description = mipmapDescription(cudaFilterModePoint);
    description.mipmapLevelBias = bias;
    const cudaTextureObject_t texture = textureOf(resourceOf(mipmaps), description);
    std::vector<LevelPoint> points;
    for (int level = 0; level < kLevels; ++level) points.push_back({0.3f, 0.7f, float(level)});
    const auto results = fetched<float>(points, [=] __device__(LevelPoint p) { return tex2DLod<float>(texture, p.x, p.y, p.level); });
    EXPECT(different("bias", results, 0, [&](std::size_t i) {
             return pointOn(std::min(std::max(int(points[i].level + bias), 0), kLevels - 1), points[i].x, points[i].y);
           }) == 0);
    EXPECT_OK(cudaDestroyTextureObject(texture));
  }
  EXPECT_OK(cudaFreeMipmappedArray(mipmaps));
  return verdict();
}
