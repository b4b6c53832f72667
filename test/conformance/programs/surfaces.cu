// Surfaces of all shapes: what kernels write, copies, surfaces and textures read; edges are clamped, or read as zero.
// conformance: flags=--extended-lambda judges=itself
#include "textures.h"

constexpr int kWidth = 16, kHeight = 6, kDepth = 3;

static cudaSurfaceObject_t surfaceOf(cudaArray_t array) {
  const cudaResourceDesc resource = resourceOf(array);
  cudaSurfaceObject_t surface = 0;
  EXPECT_OK(cudaCreateSurfaceObject(&surface, &resource));
  cudaResourceDesc back{};
  EXPECT_OK(cudaGetSurfaceObjectResourceDesc(&back, surface));
  EXPECT(back.res.array.array == array);
  return surface;
}

template <class T>
static std::vector<T> contents(cudaArray_t array, int width, int height, int depth) {
  std::vector<T> values(width * height * depth);
  cudaMemcpy3DParms copy{};
  copy.srcArray = array;
  copy.dstPtr = make_cudaPitchedPtr(values.data(), width * sizeof(T), width, height);
  copy.extent = make_cudaExtent(width, height, depth);
  copy.kind = cudaMemcpyDeviceToHost;
  EXPECT_OK(cudaMemcpy3D(&copy));
  return values;
}

__device__ int valueAt(int x, int y, int z) { return x + 100 * y + 10000 * z; }

enum class Shape { line, plane, volume, lines, planes, cube };

__global__ void write(cudaSurfaceObject_t surface, Shape shape) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, value = valueAt(x, y, z), at = x * 4;
  if (shape == Shape::line) surf1Dwrite(value, surface, at);
  if (shape == Shape::plane) surf2Dwrite(value, surface, at, y);
  if (shape == Shape::volume) surf3Dwrite(value, surface, at, y, z);
  if (shape == Shape::lines) surf1DLayeredwrite(value, surface, at, z);
  if (shape == Shape::planes) surf2DLayeredwrite(value, surface, at, y, z);
  if (shape == Shape::cube) surfCubemapwrite(value, surface, at, y, z);
}

/// Adds what each shape's read function gives to an array of zeros.
__global__ void read(cudaSurfaceObject_t surface, Shape shape, int* out) {
  const int x = threadIdx.x, y = threadIdx.y, z = blockIdx.x, at = x * 4;
  int value = -1;
  if (shape == Shape::line) value = surf1Dread<int>(surface, at);
  if (shape == Shape::plane) value = surf2Dread<int>(surface, at, y);
  if (shape == Shape::volume) value = surf3Dread<int>(surface, at, y, z);
  if (shape == Shape::lines) value = surf1DLayeredread<int>(surface, at, z);
  if (shape == Shape::planes) value = surf2DLayeredread<int>(surface, at, y, z);
  if (shape == Shape::cube) value = surfCubemapread<int>(surface, at, y, z);
  out[(z * blockDim.y + y) * blockDim.x + x] = value;
}

static void shape(const char* name, Shape which, int width, int height, int depth, unsigned flags) {
  const bool flat = which == Shape::line || which == Shape::lines, single = which == Shape::line || which == Shape::plane;
  const cudaArray_t array = arrayOf(std::vector<int>(width * height * depth, -7), width, flat ? 0 : height, single ? 0 : depth,
                                    flags | cudaArraySurfaceLoadStore);
  const cudaSurfaceObject_t surface = surfaceOf(array);
  write<<<depth, dim3(width, height)>>>(surface, which);
  const auto values = contents<int>(array, width, height, depth);
  int* out = nullptr;
  EXPECT_OK(cudaMalloc(&out, values.size() * 4));
  read<<<depth, dim3(width, height)>>>(surface, which, out);
  std::vector<int> back(values.size());
  EXPECT_OK(cudaMemcpy(back.data(), out, values.size() * 4, cudaMemcpyDeviceToHost));
  bool right = back == values;
  for (int i = 0; i < int(values.size()); ++i)
    right &= values[i] == i % width + 100 * (i / width % height) + 10000 * (i / width / height);
  if (!right) std::printf("wrong: %s\n", name);
  EXPECT(right);
  EXPECT_OK(cudaFree(out));
  EXPECT_OK(cudaDestroySurfaceObject(surface));
  EXPECT_OK(cudaFreeArray(array));
}

__global__ void beyond(cudaSurfaceObject_t surface, int* out) {
  out[0] = surf2Dread<int>(surface, 4 * kWidth, 0, cudaBoundaryModeZero);
  out[1] = surf2Dread<int>(surface, 0, -1, cudaBoundaryModeZero);
  out[2] = surf2Dread<int>(surface, 4 * kWidth + 40, kHeight + 3, cudaBoundaryModeClamp);
  out[3] = surf2Dread<int>(surface, -8, 1, cudaBoundaryModeClamp);
  surf2Dwrite(5, surface, 4 * kWidth, 2, cudaBoundaryModeZero);
  surf2Dwrite(6, surface, 4000, 3, cudaBoundaryModeClamp);
}

static void boundaries() {
  std::vector<int> values(kWidth * kHeight);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = int(i) + 1;
  const cudaArray_t array = arrayOf(values, kWidth, kHeight, 0, cudaArraySurfaceLoadStore);
  const cudaSurfaceObject_t surface = surfaceOf(array);
  int *out = nullptr, got[4] = {};
  EXPECT_OK(cudaMalloc(&out, sizeof got));
  beyond<<<1, 1>>>(surface, out);
  EXPECT_OK(cudaMemcpy(got, out, sizeof got, cudaMemcpyDeviceToHost));
  EXPECT(got[0] == 0 && got[1] == 0);
  EXPECT(got[2] == values.back() && got[3] == values[kWidth]);
  values[4 * kWidth - 1] = 6;
  EXPECT(contents<int>(array, kWidth, kHeight, 1) == values);
  EXPECT_OK(cudaFree(out));
  EXPECT_OK(cudaDestroySurfaceObject(surface));
  EXPECT_OK(cudaFreeArray(array));
}

__global__ void widths(cudaSurfaceObject_t bytes, cudaSurfaceObject_t shorts, cudaSurfaceObject_t wide) {
  const int x = threadIdx.x;
  surf1Dwrite(make_uchar4(x, x + 1, x + 2, x + 3), bytes, x * 4);
  surf1Dwrite(static_cast<unsigned short>(x * 1000), shorts, x * 2);
  surf1Dwrite(make_float4(x, 2 * x, 3 * x, -x), wide, x * 16);
}

/// Elements of 2, 4 and 16 bytes, which a texture reads after the kernel.
static void elements() {
  const cudaArray_t bytes = arrayOf(std::vector<uchar4>(32), 32, 0, 0, cudaArraySurfaceLoadStore);
  const cudaArray_t shorts = arrayOf(std::vector<unsigned short>(32), 32, 0, 0, cudaArraySurfaceLoadStore);
  const cudaArray_t wide = arrayOf(std::vector<float4>(32), 32, 0, 0, cudaArraySurfaceLoadStore);
  const cudaSurfaceObject_t surfaces[] = {surfaceOf(bytes), surfaceOf(shorts), surfaceOf(wide)};
  const cudaTextureObject_t textures[] = {textureOf(resourceOf(bytes), describe({})), textureOf(resourceOf(shorts), describe({})),
                                          textureOf(resourceOf(wide), describe({}))};
  widths<<<1, 32>>>(surfaces[0], surfaces[1], surfaces[2]);
  const std::vector<float> points{0.5f, 9.5f, 31.5f};
  const cudaTextureObject_t a = textures[0], b = textures[1], c = textures[2];
  const auto four = fetched<uchar4>(points, [=] __device__(float x) { return tex1D<uchar4>(a, x); });
  const auto one = fetched<unsigned short>(points, [=] __device__(float x) { return tex1D<unsigned short>(b, x); });
  const auto large = fetched<float4>(points, [=] __device__(float x) { return tex1D<float4>(c, x); });
  EXPECT(four[1].x == 9 && four[1].w == 12 && four[2].y == 32);
  EXPECT(one[0] == 0 && one[1] == 9000 && one[2] == 31000);
  EXPECT(large[1].y == 18 && large[2].z == 93 && large[2].w == -31);
  for (const auto texture : textures) EXPECT_OK(cudaDestroyTextureObject(texture));
  for (const auto surface : surfaces) EXPECT_OK(cudaDestroySurfaceObject(surface));
  for (const auto array : {bytes, shorts, wide}) EXPECT_OK(cudaFreeArray(array));
}

int main() {
  shape("1D", Shape::line, kWidth, 1, 1, 0);
  shape("2D", Shape::plane, kWidth, kHeight, 1, 0);
  shape("3D", Shape::volume, kWidth, kHeight, kDepth, 0);
  shape("layered 1D", Shape::lines, kWidth, 1, kDepth, cudaArrayLayered);
  shape("layered 2D", Shape::planes, kWidth, kHeight, kDepth, cudaArrayLayered);
  shape("cubemap", Shape::cube, 8, 8, 6, cudaArrayCubemap);
  boundaries();
  elements();
  return verdict();
}
