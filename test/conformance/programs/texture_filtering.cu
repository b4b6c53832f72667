// Linear filters in one, two and three dimensions; their weights, and the products of these, have 8 bits of fraction.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kEdge = 8;

static float pattern(int i) { return float((i * 29 + 7) % 64); }

static void oneDimension() {
  std::vector<float> values(kEdge);
  for (int i = 0; i < kEdge; ++i) values[i] = pattern(i);
  const cudaArray_t array = arrayOf(values, kEdge);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear}));
  std::vector<float> points;
  for (int k = 0; k <= kEdge * 256; ++k) points.push_back(k / 256.0f);
  const auto results = fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  EXPECT(different("1D", results, 0.01f, [&](std::size_t i) {
           return linear(points[i], [&](int at) { return values[wrapped(cudaAddressModeClamp, at, kEdge)]; });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

/// Between two texels there are 256 steps, so most of finer points give the value of another one.
static void steps() {
  const cudaArray_t array = arrayOf(std::vector<float>{0, 256}, 2);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear}));
  std::vector<float> points;
  for (int k = 0; k < 4096; ++k) points.push_back(0.5f + k / 4096.0f);
  auto results = fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  bool whole = true;
  for (const float value : results) whole &= value == std::floor(value);
  EXPECT(whole);
  EXPECT(std::is_sorted(results.begin(), results.end()));
  results.erase(std::unique(results.begin(), results.end()), results.end());
  EXPECT(results.size() >= 256 && results.size() <= 257);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void twoDimensions() {
  std::vector<float4> values(kEdge * kEdge);
  for (int i = 0; i < kEdge * kEdge; ++i) values[i] = make_float4(pattern(i), -pattern(i + 5), pattern(3 * i), 1);
  const cudaArray_t array = arrayOf(values, kEdge, kEdge);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear}));
  std::vector<float2> points;
  for (int j = 0; j < kEdge * 4; ++j)
    for (int i = 0; i < kEdge * 16; ++i) points.push_back(make_float2(i / 16.0f, j / 4.0f));
  const auto results = fetched<float4>(points, [=] __device__(float2 p) { return tex2D<float4>(texture, p.x, p.y); });
  const auto expected = [&](std::size_t i, auto channel) {
    return linear(points[i].y, [&](int y) {
      return linear(points[i].x, [&](int x) {
        return channel(values[wrapped(cudaAddressModeClamp, y, kEdge) * kEdge + wrapped(cudaAddressModeClamp, x, kEdge)]);
      });
    });
  };
  std::vector<float> x, y, w;
  for (const float4& value : results) x.push_back(value.x), y.push_back(value.y), w.push_back(value.w);
  EXPECT(different("2D x", x, 0.01f, [&](std::size_t i) { return expected(i, [](float4 v) { return v.x; }); }) == 0);
  EXPECT(different("2D y", y, 0.01f, [&](std::size_t i) { return expected(i, [](float4 v) { return v.y; }); }) == 0);
  EXPECT(different("2D w", w, 0, [&](std::size_t) { return 1.0f; }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void threeDimensions() {
  std::vector<float> values(kEdge * kEdge * kEdge);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = pattern(int(i));
  const cudaArray_t array = arrayOf(values, kEdge, kEdge, kEdge);
  Settings settings{cudaAddressModeWrap, cudaFilterModeLinear};
  settings.normalized = true;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe(settings));
  std::vector<float3> points;
  for (int i = 0; i < 1000; ++i)
    points.push_back(make_float3(i * 17 % 256 / 128.0f - 1, i * 23 % 128 / 64.0f, i * 5 % 64 / 32.0f));
  const auto results = fetched<float>(points, [=] __device__(float3 p) { return tex3D<float>(texture, p.x, p.y, p.z); });
  const auto at = [&](int i) { return wrapped(cudaAddressModeWrap, i, kEdge); };
  // Eight weights are rounded by 1/512 each, and the values are below 64.
  EXPECT(different("3D", results, 1, [&](std::size_t i) {
           return linear(points[i].z * kEdge, [&](int z) {
             return linear(points[i].y * kEdge, [&](int y) {
               return linear(points[i].x * kEdge, [&](int x) { return values[(at(z) * kEdge + at(y)) * kEdge + at(x)]; });
             });
           });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

int main() {
  oneDimension();
  steps();
  twoDimensions();
  threeDimensions();
  return verdict();
}
