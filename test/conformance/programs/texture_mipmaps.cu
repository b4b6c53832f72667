// Levels of mipmapped textures: given, from gradients, mixed by a linear filter, clamped.
// conformance: flags=--extended-lambda judges=itself
#include "mipmaps.h"

static float mixed(const LevelPoint& p, float level) {
  level = std::min(std::max(level, 0.0f), float(kLevels - 1));
  const int lower = int(std::floor(level)), upper = std::min(lower + 1, kLevels - 1);
  const float weight = level - lower;
  return (1 - weight) * pointOn(lower, p.x, p.y) + weight * pointOn(upper, p.x, p.y);
}

static std::vector<LevelPoint> pointsAt(std::initializer_list<float> levels) {
  std::vector<LevelPoint> points;
  for (const float level : levels)
    for (int i = 0; i < 16; ++i) points.push_back({(i + 0.5f) / 16, (15.5f - i) / 16, level});
  return points;
}

static void given(cudaMipmappedArray_t mipmaps) {
  const cudaTextureObject_t nearest = textureOf(resourceOf(mipmaps), mipmapDescription(cudaFilterModePoint));
  const auto near = pointsAt({0, 0.25f, 0.75f, 1, 2.25f, 4, 4.75f, 5, 9, -3});
  const auto points = fetched<float>(near, [=] __device__(LevelPoint p) { return tex2DLod<float>(nearest, p.x, p.y, p.level); });
  EXPECT(different("nearest level", points, 0, [&](std::size_t i) {
           const int level = std::min(std::max(int(std::floor(near[i].level + 0.5f)), 0), kLevels - 1);
           return pointOn(level, near[i].x, near[i].y);
         }) == 0);
  const cudaTextureObject_t linear = textureOf(resourceOf(mipmaps), mipmapDescription(cudaFilterModeLinear));
  const auto between = pointsAt({0, 0.5f, 1.25f, 2.75f, 4.5f, 7});
  const auto mix = fetched<float>(between, [=] __device__(LevelPoint p) { return tex2DLod<float>(linear, p.x, p.y, p.level); });
  EXPECT(different("mixed levels", mix, 1, [&](std::size_t i) { return mixed(between[i], between[i].level); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(nearest));
  EXPECT_OK(cudaDestroyTextureObject(linear));
}

/// Steps of 2^k texels read level k.
static void gradients(cudaMipmappedArray_t mipmaps) {
  const cudaTextureObject_t texture = textureOf(resourceOf(mipmaps), mipmapDescription(cudaFilterModePoint));
  const auto points = pointsAt({0, 1, 2, 3, 4, 5});
  const auto results = fetched<float>(points, [=] __device__(LevelPoint p) {
    const float step = exp2f(p.level) / kEdge;
    return tex2DGrad<float>(texture, p.x, p.y, make_float2(step, 0), make_float2(0, step / 2));
  });
  EXPECT(different("gradients", results, 0, [&](std::size_t i) { return pointOn(int(points[i].level), points[i].x, points[i].y); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

static void clamped(cudaMipmappedArray_t mipmaps) {
  cudaTextureDesc description = mipmapDescription(cudaFilterModePoint);
  description.minMipmapLevelClamp = 1;
  description.maxMipmapLevelClamp = 3;
  const cudaTextureObject_t texture = textureOf(resourceOf(mipmaps), description);
  const auto points = pointsAt({0, 1, 2, 3, 5});
  const auto results = fetched<float>(points, [=] __device__(LevelPoint p) { return tex2DLod<float>(texture, p.x, p.y, p.level); });
  EXPECT(different("clamped levels", results, 0, [&](std::size_t i) {
           return pointOn(std::min(std::max(int(points[i].level), 1), 3), points[i].x, points[i].y);
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

/// Without a level, kernels read the first one.
static void base(cudaMipmappedArray_t mipmaps) {
  const cudaTextureObject_t texture = textureOf(resourceOf(mipmaps), mipmapDescription(cudaFilterModeLinear));
  const auto points = pointsAt({0});
  const auto results = fetched<float>(points, [=] __device__(LevelPoint p) { return tex2D<float>(texture, p.x, p.y); });
  EXPECT(different("base level", results, 0, [&](std::size_t i) { return pointOn(0, points[i].x, points[i].y); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
}

int main() {
  const cudaMipmappedArray_t mipmaps = makeMipmaps();
  given(mipmaps);
  gradients(mipmaps);
  clamped(mipmaps);
  base(mipmaps);
  EXPECT_OK(cudaFreeMipmappedArray(mipmaps));
  return verdict();
}
