// Resource views: another format for the same bits, some levels. The descriptions can be asked for.
// conformance: flags=--extended-lambda judges=itself
#include "mipmaps.h"

static void format() {
  std::vector<float> values;
  for (int i = 0; i < 64; ++i) values.push_back(i * 1.7f - 20);
  const cudaArray_t array = arrayOf(values, 64);
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatUnsignedInt1;
  view.width = 64;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), describe({}), &view);
  std::vector<float> points;
  for (int i = 0; i < 64; ++i) points.push_back(i + 0.5f);
  const auto bits = fetched<unsigned>(points, [=] __device__(float x) { return tex1D<unsigned>(texture, x); });
  EXPECT(std::memcmp(bits.data(), values.data(), 256) == 0);
  cudaResourceViewDesc back{};
  EXPECT_OK(cudaGetTextureObjectResourceViewDesc(&back, texture));
  EXPECT(back.format == cudaResViewFormatUnsignedInt1 && back.width == 64);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

/// A view without a depth does not fit an array of layers.
static void layers() {
  const cudaArray_t array = arrayOf(std::vector<float>(8 * 8 * 6), 8, 8, 6, cudaArrayLayered);
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatFloat1;
  view.width = view.height = 8;
  view.firstLayer = 2;
  view.lastLayer = 4;
  const cudaResourceDesc resource = resourceOf(array);
  const cudaTextureDesc description = describe({});
  cudaTextureObject_t texture = 0;
  EXPECT(cudaCreateTextureObject(&texture, &resource, &description, &view) == cudaErrorInvalidValue);
  EXPECT_OK(cudaDestroyTextureObject(0));
  EXPECT_OK(cudaFreeArray(array));
}

static void levels() {
  const cudaMipmappedArray_t mipmaps = makeMipmaps();
  cudaResourceViewDesc view{};
  view.format = cudaResViewFormatFloat1;
  view.width = view.height = kEdge;
  view.firstMipmapLevel = 2;
  view.lastMipmapLevel = 3;
  const cudaTextureObject_t texture = textureOf(resourceOf(mipmaps), mipmapDescription(cudaFilterModePoint), &view);
  const auto results = fetched<float>(std::vector<float>{0, 1, 4}, [=] __device__(float level) { return tex2DLod<float>(texture, 0.3f, 0.6f, level); });
  EXPECT(results[0] == pointOn(2, 0.3f, 0.6f));
  EXPECT(results[1] == pointOn(3, 0.3f, 0.6f));
  EXPECT(results[2] == pointOn(3, 0.3f, 0.6f));
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeMipmappedArray(mipmaps));
}

static void descriptions() {
  const cudaArray_t array = arrayOf(std::vector<float>(16), 16);
  cudaTextureDesc given = describe({cudaAddressModeBorder, cudaFilterModeLinear});
  given.maxAnisotropy = 8;
  const cudaTextureObject_t texture = textureOf(resourceOf(array), given);
  cudaTextureDesc back{};
  cudaResourceDesc resource{};
  cudaResourceViewDesc view{};
  EXPECT_OK(cudaGetTextureObjectTextureDesc(&back, texture));
  EXPECT_OK(cudaGetTextureObjectResourceDesc(&resource, texture));
  EXPECT(back.addressMode[0] == cudaAddressModeBorder && back.filterMode == cudaFilterModeLinear && back.maxAnisotropy == 8);
  EXPECT(resource.resType == cudaResourceTypeArray && resource.res.array.array == array);
  EXPECT_OK(cudaGetTextureObjectResourceViewDesc(&view, texture));
  EXPECT_OK(cudaDestroyTextureObject(texture));
  std::size_t most = 0;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  EXPECT_OK(cudaDeviceGetTexture1DLinearMaxWidth(&most, &format, 0));
  EXPECT(most >= 1u << 27);
  EXPECT_OK(cudaFreeArray(array));
}

int main() {
  format();
  layers();
  levels();
  descriptions();
  return verdict();
}
