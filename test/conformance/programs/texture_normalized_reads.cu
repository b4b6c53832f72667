// Integers of 8 and 16 bits read as numbers from 0 or -1 to 1, halves, and elements as they are.
// conformance: flags=--extended-lambda judges=itself
#include <cuda_fp16.h>

#include "textures.h"

template <class T>
static void normalized(const char* name, double most) {
  std::vector<T> values(256);
  for (int i = 0; i < 256; ++i) values[i] = T(sizeof(T) == 1 ? i : i * 257);
  const cudaArray_t array = arrayOf(values, 256);
  const cudaTextureObject_t texture =
      textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeNormalizedFloat}));
  std::vector<float> points;
  for (int i = 0; i < 256; ++i) points.push_back(i + 0.5f);
  const auto results = fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  EXPECT(different(name, results, 1e-6f, [&](std::size_t i) { return float(std::max(values[i] / most, -1.0)); }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

template <class T>
static void elements() {
  std::vector<T> values(64);
  for (int i = 0; i < 64; ++i) values[i] = T(i * 1234567 - 40000000);
  const cudaArray_t array = arrayOf(values, 64);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({}));
  std::vector<float> points;
  for (int i = 0; i < 64; ++i) points.push_back(i + 0.5f);
  EXPECT(fetched<T>(points, [=] __device__(float x) { return tex1D<T>(texture, x); }) == values);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void filteredBytes() {
  const std::vector<uchar4> values{make_uchar4(0, 255, 100, 9), make_uchar4(255, 0, 200, 9)};
  const cudaArray_t array = arrayOf(values, 2);
  const cudaTextureObject_t texture =
      textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear, cudaReadModeNormalizedFloat}));
  const auto results = fetched<float4>(std::vector<float>{0.5f, 0.75f, 1.0f, 1.5f},
                                       [=] __device__(float x) { return tex1D<float4>(texture, x); });
  const float weights[] = {0, 0.25f, 0.5f, 1};
  for (int i = 0; i < 4; ++i) {
    EXPECT(near(results[i].x, weights[i], 0.003f) && near(results[i].y, 1 - weights[i], 0.003f));
    EXPECT(near(results[i].z, (100 + 100 * weights[i]) / 255, 0.003f) && near(results[i].w, 9 / 255.0f, 0.003f));
  }
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

static void halves() {
  const cudaChannelFormatDesc format = cudaCreateChannelDescHalf();
  std::vector<__half> values;
  for (int i = 0; i < 32; ++i) values.push_back(__float2half(i * 0.375f - 3));
  cudaArray_t array = nullptr;
  EXPECT_OK(cudaMallocArray(&array, &format, 32));
  EXPECT_OK(cudaMemcpy2DToArray(array, 0, 0, values.data(), 64, 64, 1, cudaMemcpyHostToDevice));
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({cudaAddressModeClamp, cudaFilterModeLinear}));
  std::vector<float> points;
  for (int i = 0; i < 32; ++i) points.push_back(i + 0.5f);
  const auto results = fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  EXPECT(different("half", results, 0, [](std::size_t i) { return i * 0.375f - 3; }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

int main() {
  normalized<unsigned char>("unsigned char", 255);
  normalized<signed char>("signed char", 127);
  normalized<unsigned short>("unsigned short", 65535);
  normalized<short>("short", 32767);
  elements<signed char>();
  elements<unsigned short>();
  elements<int>();
  elements<unsigned>();
  filteredBytes();
  halves();
  return verdict();
}
