// Textures of linear memory (tex1Dfetch) and of pitched memory, which share the memory with pointers.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

static void linearMemory() {
  constexpr int n = 1000;
  std::vector<int2> values(n);
  for (int i = 0; i < n; ++i) values[i] = make_int2(i * 3, -i);
  int2* memory = nullptr;
  EXPECT_OK(cudaMalloc(&memory, n * sizeof(int2)));
  EXPECT_OK(cudaMemcpy(memory, values.data(), n * sizeof(int2), cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<int2>();
  resource.res.linear.sizeInBytes = (n - 10) * sizeof(int2);
  const cudaTextureObject_t texture = textureOf(resource, describe({}));
  std::vector<int> points;
  for (int i = -5; i < n; ++i) points.push_back(i);
  const auto results = fetched<int2>(points, [=] __device__(int i) { return tex1Dfetch<int2>(texture, i); });
  bool inside = true, outside = true;
  for (std::size_t k = 0; k < points.size(); ++k) {
    const int i = points[k];
    if (i >= 0 && i < n - 10) inside &= results[k].x == i * 3 && results[k].y == -i;
    else outside &= results[k].x == 0 && results[k].y == 0;
  }
  EXPECT(inside);
  EXPECT(outside);
  EXPECT_OK(cudaMemset(memory, 1, 8));
  EXPECT(fetched<int2>(std::vector<int>{0}, [=] __device__(int i) { return tex1Dfetch<int2>(texture, i); })[0].x == 0x01010101);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFree(memory));
}

static void normalizedBytes() {
  unsigned char values[64];
  for (int i = 0; i < 64; ++i) values[i] = i * 4;
  unsigned char* memory = nullptr;
  EXPECT_OK(cudaMalloc(&memory, 64));
  EXPECT_OK(cudaMemcpy(memory, values, 64, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = memory;
  resource.res.linear.desc = cudaCreateChannelDesc<unsigned char>();
  resource.res.linear.sizeInBytes = 64;
  const cudaTextureObject_t texture =
      textureOf(resource, describe({cudaAddressModeClamp, cudaFilterModePoint, cudaReadModeNormalizedFloat}));
  const auto results = fetched<float>(std::vector<int>{0, 10, 63}, [=] __device__(int i) { return tex1Dfetch<float>(texture, i); });
  EXPECT(results[0] == 0 && near(results[1], 40 / 255.0f, 1e-6f) && near(results[2], 252 / 255.0f, 1e-6f));
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFree(memory));
}

static void pitchedMemory() {
  constexpr int width = 40, height = 12;
  std::vector<float> values(width * height);
  for (int i = 0; i < width * height; ++i) values[i] = float(i * 7 % 61);
  float* memory = nullptr;
  std::size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&memory, &pitch, width * sizeof(float), height));
  EXPECT_OK(cudaMemcpy2D(memory, pitch, values.data(), width * sizeof(float), width * sizeof(float), height, cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D.devPtr = memory;
  resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  const auto at = [&](int x, int y) {
    return values[wrapped(cudaAddressModeClamp, y, height) * width + wrapped(cudaAddressModeClamp, x, width)];
  };
  std::vector<float2> points;
  for (int j = -2; j < height + 2; ++j)
    for (int i = -2; i < width + 2; ++i) points.push_back(make_float2(i + 0.75f, j + 0.25f));
  for (const auto filter : {cudaFilterModePoint, cudaFilterModeLinear}) {
    const cudaTextureObject_t texture = textureOf(resource, describe({cudaAddressModeClamp, filter}));
    const auto results = fetched<float>(points, [=] __device__(float2 p) { return tex2D<float>(texture, p.x, p.y); });
    EXPECT(different("pitched", results, filter == cudaFilterModePoint ? 0 : 0.01f, [&](std::size_t i) {
             if (filter == cudaFilterModePoint) return at(int(std::floor(points[i].x)), int(std::floor(points[i].y)));
             return linear(points[i].y, [&](int y) { return linear(points[i].x, [&](int x) { return at(x, y); }); });
           }) == 0);
    EXPECT_OK(cudaDestroyTextureObject(texture));
  }
  EXPECT_OK(cudaFree(memory));
}

int main() {
  linearMemory();
  normalizedBytes();
  pitchedMemory();
  return verdict();
}
