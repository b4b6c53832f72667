// Formats that are normalized by themselves: textures give numbers from 0 or -1 to 1, whatever the number of channels.
// conformance: flags="-lcuda --extended-lambda" judges=itself
#include "show_driver.h"
#include "textures.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

template <class T>
static void format(CUarray_format format, int channels, double most) {
  constexpr int width = 16;
  std::vector<T> values(width * channels);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = T(i * 1237 - 99);
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{width, 0, 0, format, unsigned(channels), 0};
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  EXPECT_DRIVER(cuMemcpyHtoA(array, 0, values.data(), values.size() * sizeof(T)));
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC description{};
  for (auto& mode : description.addressMode) mode = CU_TR_ADDRESS_MODE_CLAMP;
  CUtexObject object = 0;
  EXPECT_DRIVER(cuTexObjectCreate(&object, &resource, &description, nullptr));
  std::vector<float> points;
  for (int i = 0; i < width; ++i) points.push_back(i + 0.5f);
  const cudaTextureObject_t texture = object;
  const auto results = fetched<float4>(points, [=] __device__(float x) { return tex1D<float4>(texture, x); });
  bool right = true;
  for (int i = 0; i < width; ++i) {
    const float got[] = {results[i].x, results[i].y, results[i].z, results[i].w};
    for (int c = 0; c < channels; ++c) right &= near(got[c], float(std::max(values[i * channels + c] / most, -1.0)), 1e-6f);
  }
  if (!right) std::printf("wrong: format %d\n", int(format));
  EXPECT(right);
  EXPECT_DRIVER(cuTexObjectDestroy(object));
  EXPECT_DRIVER(cuArrayDestroy(array));
}

/// A plane without flags has a call of its own.
static void plane() {
  const CUDA_ARRAY_DESCRIPTOR given{24, 10, CU_AD_FORMAT_HALF, 2};
  CUDA_ARRAY_DESCRIPTOR seen{};
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArrayCreate(&array, &given));
  EXPECT_DRIVER(cuArrayGetDescriptor(&seen, array));
  EXPECT(seen.Width == 24 && seen.Height == 10 && seen.Format == CU_AD_FORMAT_HALF && seen.NumChannels == 2);
  EXPECT_DRIVER(cuArrayDestroy(array));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  plane();
  format<unsigned char>(CU_AD_FORMAT_UNORM_INT8X1, 1, 255);
  format<unsigned char>(CU_AD_FORMAT_UNORM_INT8X2, 2, 255);
  format<unsigned char>(CU_AD_FORMAT_UNORM_INT8X4, 4, 255);
  format<unsigned short>(CU_AD_FORMAT_UNORM_INT16X1, 1, 65535);
  format<unsigned short>(CU_AD_FORMAT_UNORM_INT16X4, 4, 65535);
  format<signed char>(CU_AD_FORMAT_SNORM_INT8X2, 2, 127);
  format<short>(CU_AD_FORMAT_SNORM_INT16X2, 2, 32767);
  format<short>(CU_AD_FORMAT_SNORM_INT16X4, 4, 32767);
  return verdict();
}
