// tex2Dgather: one channel of the four texels that a linear filter would mix.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kWidth = 12, kHeight = 7;

int main() {
  std::vector<int4> values;
  for (int i = 0; i < kWidth * kHeight; ++i) values.push_back(make_int4(i, 1000 + i, 2000 + i, -i));
  const cudaArray_t array = arrayOf(values, kWidth, kHeight, 0, cudaArrayTextureGather);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({}));
  std::vector<float2> points;
  for (int j = 0; j <= kHeight; ++j)
    for (int i = 0; i <= kWidth; ++i) points.push_back(make_float2(i + 0.125f, j + 0.125f));
  const auto red = fetched<int4>(points, [=] __device__(float2 p) { return tex2Dgather<int4>(texture, p.x, p.y, 0); });
  const auto green = fetched<int4>(points, [=] __device__(float2 p) { return tex2Dgather<int4>(texture, p.x, p.y, 1); });
  const auto alpha = fetched<int4>(points, [=] __device__(float2 p) { return tex2Dgather<int4>(texture, p.x, p.y, 3); });
  const auto texel = [&](int x, int y) {
    return wrapped(cudaAddressModeClamp, y, kHeight) * kWidth + wrapped(cudaAddressModeClamp, x, kWidth);
  };
  int wrong = 0;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const int i = int(std::floor(points[k].x - 0.5f)), j = int(std::floor(points[k].y - 0.5f));
    const int expected[] = {texel(i, j + 1), texel(i + 1, j + 1), texel(i + 1, j), texel(i, j)};
    const int *r = &red[k].x, *g = &green[k].x, *a = &alpha[k].x;
    for (int c = 0; c < 4; ++c) wrong += r[c] != expected[c] || g[c] != 1000 + expected[c] || a[c] != -expected[c];
  }
  EXPECT(wrong == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
  return verdict();
}
