// What programs about textures share: arrays with known contents, textures of them, fetches of a list of points, and the addressing and
// filtering of the programming guide on the host.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "expect.h"

struct Settings {
  cudaTextureAddressMode address = cudaAddressModeClamp;
  cudaTextureFilterMode filter = cudaFilterModePoint;
  cudaTextureReadMode read = cudaReadModeElementType;
  bool normalized = false;
};

/// An array with these values, row by row and layer by layer. Height and depth may be 0.
template <class T>
cudaArray_t arrayOf(const std::vector<T>& values, std::size_t width, std::size_t height = 0, std::size_t depth = 0, unsigned flags = 0) {
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<T>();
  EXPECT_OK(cudaMalloc3DArray(&array, &format, make_cudaExtent(width, height, depth), flags));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<T*>(values.data()), width * sizeof(T), width, std::max<std::size_t>(height, 1));
  copy.dstArray = array;
  copy.extent = make_cudaExtent(width, std::max<std::size_t>(height, 1), std::max<std::size_t>(depth, 1));
  copy.kind = cudaMemcpyHostToDevice;
  EXPECT_OK(cudaMemcpy3D(&copy));
  return array;
}

inline cudaTextureDesc describe(const Settings& settings) {
  cudaTextureDesc texture{};
  for (auto& address : texture.addressMode) address = settings.address;
  texture.filterMode = settings.filter;
  texture.readMode = settings.read;
  texture.normalizedCoords = settings.normalized;
  return texture;
}

inline cudaResourceDesc resourceOf(cudaArray_t array) {
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  return resource;
}

inline cudaTextureObject_t textureOf(const cudaResourceDesc& resource, const cudaTextureDesc& texture,
                                     const cudaResourceViewDesc* view = nullptr) {
  cudaTextureObject_t object = 0;
  EXPECT_OK(cudaCreateTextureObject(&object, &resource, &texture, view));
  return object;
}

/// Runs fetch(point) on the device for each point.
template <class T, class Point, class Fetch>
__global__ void fetchAll(const Point* points, T* results, int count, Fetch fetch) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) results[i] = fetch(points[i]);
}

template <class T, class Point, class Fetch>
std::vector<T> fetched(const std::vector<Point>& points, Fetch fetch) {
  Point* in = nullptr;
  T* out = nullptr;
  std::vector<T> results(points.size());
  EXPECT_OK(cudaMalloc(&in, points.size() * sizeof(Point)));
  EXPECT_OK(cudaMalloc(&out, points.size() * sizeof(T)));
  EXPECT_OK(cudaMemcpy(in, points.data(), points.size() * sizeof(Point), cudaMemcpyHostToDevice));
  fetchAll<T><<<unsigned(points.size() + 127) / 128, 128>>>(in, out, int(points.size()), fetch);
  EXPECT_OK(cudaMemcpy(results.data(), out, points.size() * sizeof(T), cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaFree(in));
  EXPECT_OK(cudaFree(out));
  return results;
}

/// The index of the texel that an address mode gives; -1: the border.
inline int wrapped(cudaTextureAddressMode mode, int i, int n) {
  switch (mode) {
    case cudaAddressModeWrap: return (i % n + n) % n;
    case cudaAddressModeMirror: i = (i % (2 * n) + 2 * n) % (2 * n); return i < n ? i : 2 * n - 1 - i;
    case cudaAddressModeBorder: return i < 0 || i >= n ? -1 : i;
    default: return i < 0 ? 0 : i >= n ? n - 1 : i;
  }
}

/// The linear filter along one axis: texel(i) is any function; the weight has 8 bits of fraction.
template <class Texel>
float linear(float x, Texel texel) {
  const float shifted = std::floor((x - 0.5f) * 256 + 0.5f) / 256;
  const float base = std::floor(shifted), weight = shifted - base;
  const int i = int(base);
  return (1 - weight) * texel(i) + weight * texel(i + 1);
}

inline bool near(float a, float b, float tolerance) { return std::fabs(a - b) <= tolerance; }

/// How many of the results differ from expected(i) by more than the tolerance; prints the first one.
template <class Expected>
int different(const char* what, const std::vector<float>& results, float tolerance, Expected expected) {
  int wrong = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const float wanted = expected(i);
    if (near(results[i], wanted, tolerance)) continue;
    if (wrong++ == 0) std::printf("%s: point %zu gives %g, not %g\n", what, i, results[i], wanted);
  }
  return wrong;
}
