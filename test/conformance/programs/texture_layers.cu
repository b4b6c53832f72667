// Layered textures of one and two dimensions: layers do not mix, and a layer beyond the last one is the last one.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kWidth = 16, kHeight = 4, kLayers = 5;

static std::vector<float> pattern(int count) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = float(i % 97 + 100 * (i / 97));
  return values;
}

struct Point {
  float x, y;
  int layer;
};

static void lines() {
  const auto values = pattern(kWidth * kLayers);
  const cudaArray_t array = arrayOf(values, kWidth, 0, kLayers, cudaArrayLayered);
  cudaExtent extent{};
  unsigned flags = 0;
  EXPECT_OK(cudaArrayGetInfo(nullptr, &extent, &flags, array));
  EXPECT(extent.width == kWidth && extent.height == 0 && extent.depth == kLayers && flags == cudaArrayLayered);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear}));
  std::vector<Point> points;
  for (int layer = 0; layer < kLayers + 2; ++layer)
    for (int i = 0; i < kWidth * 4; ++i) points.push_back({i / 4.0f, 0, layer});
  const auto results = fetched<float>(points, [=] __device__(Point p) { return tex1DLayered<float>(texture, p.x, p.layer); });
  EXPECT(different("lines", results, 0.05f, [&](std::size_t i) {
           const int layer = std::min(points[i].layer, kLayers - 1);
           return linear(points[i].x, [&](int x) { return values[layer * kWidth + wrapped(cudaAddressModeClamp, x, kWidth)]; });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void planes() {
  const auto values = pattern(kWidth * kHeight * kLayers);
  const cudaArray_t array = arrayOf(values, kWidth, kHeight, kLayers, cudaArrayLayered);
  Settings settings{cudaAddressModeWrap};
  settings.normalized = true;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  std::vector<Point> points;
  for (int layer = 0; layer < kLayers; ++layer)
    for (int j = -2; j < kHeight + 2; ++j)
      for (int i = -2; i < kWidth + 2; ++i) points.push_back({(i + 0.5f) / kWidth, (j + 0.5f) / kHeight, layer});
  const auto results = fetched<float>(points, [=] __device__(Point p) { return tex2DLayered<float>(texture, p.x, p.y, p.layer); });
  EXPECT(different("planes", results, 0, [&](std::size_t i) {
           const int x = wrapped(cudaAddressModeWrap, int(std::floor(points[i].x * kWidth)), kWidth);
           const int y = wrapped(cudaAddressModeWrap, int(std::floor(points[i].y * kHeight)), kHeight);
           return values[(points[i].layer * kHeight + y) * kWidth + x];
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

int main() {
  lines();
  planes();
  return verdict();
}
