// Linear filters over integers of 8 and 16 bits that are read as numbers from 0 or -1 to 1, in
// arrays and in pitched memory. The runtime refuses a filter over elements that stay integers, and
// integers of 32 bits as such numbers.
// conformance: flags=--extended-lambda judges=itself
#include <limits>

#include "textures.h"

constexpr int kEdge = 8;
// The GPU rounds eight weights by 1/512 each, and the values differ by 2 at most.
constexpr float kTolerance = 8 * 2 / 512.0f;

template <class T>
static T element(int i) {
  return T(std::numeric_limits<T>::lowest() +
           (i * 29 + 7) % 64 *
               (double(std::numeric_limits<T>::max()) - std::numeric_limits<T>::lowest()) / 63);
}

/// Of signed numbers, the least two are -1.
template <class T>
static float number(T value) {
  return std::max(float(value / double(std::numeric_limits<T>::max())), -1.0f);
}

template <class T>
static std::vector<T> elements(int count) {
  std::vector<T> values(count);
  for (int i = 0; i < count; ++i) values[i] = element<T>(i);
  return values;
}

static cudaTextureDesc filter(cudaTextureAddressMode address, bool normalized = false) {
  Settings settings{address, cudaFilterModeLinear, cudaReadModeNormalizedFloat};
  settings.normalized = normalized;
  return describe(settings);
}

template <class T>
static void oneDimension(const char* name) {
  const std::vector<T> values = elements<T>(kEdge);
  const cudaArray_t array = arrayOf(values, kEdge);
  const cudaTextureObject_t texture = textureOf(resourceOf(array), filter(cudaAddressModeClamp));
  std::vector<float> points;
  for (int k = -16; k <= kEdge * 16 + 16; ++k) points.push_back(k / 16.0f);
  const auto results =
      fetched<float>(points, [=] __device__(float x) { return tex1D<float>(texture, x); });
  EXPECT(different(name, results, kTolerance, [&](std::size_t i) {
           return linear(points[i], [&](int at) {
             return number(values[wrapped(cudaAddressModeClamp, at, kEdge)]);
           });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

template <class T, class Fetch>
static void plane(const char* name, const std::vector<T>& values, Fetch fetch) {
  std::vector<float2> points;
  for (int j = 0; j < kEdge * 4; ++j)
    for (int i = 0; i < kEdge * 4; ++i) points.push_back(make_float2(i / 4.0f, j / 4.0f));
  const auto results = fetched<float>(points, fetch);
  EXPECT(different(name, results, kTolerance, [&](std::size_t i) {
           return linear(points[i].y, [&](int y) {
             return linear(points[i].x, [&](int x) {
               return number(values[wrapped(cudaAddressModeClamp, y, kEdge) * kEdge +
                                    wrapped(cudaAddressModeClamp, x, kEdge)]);
             });
           });
         }) == 0);
}

template <class T>
static void twoDimensions(const char* name) {
  const std::vector<T> values = elements<T>(kEdge * kEdge);
  const cudaArray_t array = arrayOf(values, kEdge, kEdge);
  cudaTextureObject_t texture = textureOf(resourceOf(array), filter(cudaAddressModeClamp));
  plane(name, values, [=] __device__(float2 p) { return tex2D<float>(texture, p.x, p.y); });
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
  T* memory = nullptr;
  std::size_t pitch = 0;
  EXPECT_OK(cudaMallocPitch(&memory, &pitch, kEdge * sizeof(T), kEdge));
  EXPECT_OK(cudaMemcpy2D(memory, pitch, values.data(), kEdge * sizeof(T), kEdge * sizeof(T), kEdge,
                         cudaMemcpyHostToDevice));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypePitch2D;
  resource.res.pitch2D = {memory, cudaCreateChannelDesc<T>(), kEdge, kEdge, pitch};
  texture = textureOf(resource, filter(cudaAddressModeClamp));
  plane(name, values, [=] __device__(float2 p) { return tex2D<float>(texture, p.x, p.y); });
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFree(memory));
}

template <class T>
static void threeDimensions(const char* name) {
  const std::vector<T> values = elements<T>(kEdge * kEdge * kEdge);
  const cudaArray_t array = arrayOf(values, kEdge, kEdge, kEdge);
  const cudaTextureObject_t texture =
      textureOf(resourceOf(array), filter(cudaAddressModeWrap, true));
  std::vector<float3> points;
  for (int i = 0; i < 1000; ++i)
    points.push_back(
        make_float3(i * 17 % 256 / 128.0f - 1, i * 23 % 128 / 64.0f, i * 5 % 64 / 32.0f));
  const auto results = fetched<float>(
      points, [=] __device__(float3 p) { return tex3D<float>(texture, p.x, p.y, p.z); });
  const auto at = [&](int i) { return wrapped(cudaAddressModeWrap, i, kEdge); };
  EXPECT(different(name, results, kTolerance, [&](std::size_t i) {
           return linear(points[i].z * kEdge, [&](int z) {
             return linear(points[i].y * kEdge, [&](int y) {
               return linear(points[i].x * kEdge, [&](int x) {
                 return number(values[(at(z) * kEdge + at(y)) * kEdge + at(x)]);
               });
             });
           });
         }) == 0);
  EXPECT_OK(cudaDestroyTextureObject(texture));
  EXPECT_OK(cudaFreeArray(array));
}

template <class T>
static void refused(cudaTextureReadMode read, cudaTextureFilterMode mode, cudaError_t expected) {
  const cudaArray_t array = arrayOf(elements<T>(kEdge), kEdge);
  const cudaResourceDesc resource = resourceOf(array);
  const cudaTextureDesc texture = describe({cudaAddressModeClamp, mode, read});
  cudaTextureObject_t object = 0;
  EXPECT(cudaCreateTextureObject(&object, &resource, &texture, nullptr) == expected);
  EXPECT(cudaGetLastError() == expected);
  EXPECT_OK(cudaFreeArray(array));
}

template <class T>
static void all(const char* name) {
  oneDimension<T>(name);
  twoDimensions<T>(name);
  threeDimensions<T>(name);
  refused<T>(cudaReadModeElementType, cudaFilterModeLinear, cudaErrorInvalidFilterSetting);
}

int main() {
  all<unsigned char>("unsigned char");
  all<signed char>("signed char");
  all<unsigned short>("unsigned short");
  all<short>("short");
  refused<int>(cudaReadModeElementType, cudaFilterModeLinear, cudaErrorInvalidFilterSetting);
  refused<unsigned>(cudaReadModeNormalizedFloat, cudaFilterModePoint, cudaErrorInvalidNormSetting);
  return verdict();
}
