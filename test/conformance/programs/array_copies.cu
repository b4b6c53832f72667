// Copies between arrays and pageable, pinned and device memory: bytes of a one-dimensional array, rectangles, boxes, layers.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

static std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + int(i) * 3;
  return values;
}

static CUarray make(std::size_t width, std::size_t height, std::size_t depth, unsigned flags = 0) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{};
  descriptor.Width = width, descriptor.Height = height, descriptor.Depth = depth;
  descriptor.Format = CU_AD_FORMAT_SIGNED_INT32, descriptor.NumChannels = 1, descriptor.Flags = flags;
  CUarray array = nullptr;
  EXPECT_DRIVER(cuArray3DCreate(&array, &descriptor));
  return array;
}

/// The calls for bytes of an array of one dimension.
static void oneDimension(CUstream stream) {
  constexpr std::size_t n = 1000, bytes = n * sizeof(int);
  CUarray a = make(n, 0, 0), b = make(n, 0, 0);
  CUdeviceptr device = 0;
  int* pinned = nullptr;
  EXPECT_DRIVER(cuMemAlloc(&device, bytes));
  EXPECT_OK(cudaMallocHost(&pinned, bytes));
  std::vector<int> values = numbers(n, 5), out(n);
  EXPECT_DRIVER(cuMemcpyHtoA(a, 0, values.data(), bytes));
  EXPECT_DRIVER(cuMemcpyAtoH(out.data(), a, 0, bytes));
  EXPECT(out == values);
  EXPECT_DRIVER(cuMemcpyAtoA(b, 400, a, 40, 2000));
  EXPECT_DRIVER(cuMemcpyAtoD(device, b, 400, 2000));
  EXPECT_DRIVER(cuMemcpyDtoH(out.data(), device, 2000));
  EXPECT(std::memcmp(out.data(), values.data() + 10, 2000) == 0);
  const std::vector<int> others = numbers(n, 77777);
  EXPECT_DRIVER(cuMemcpyHtoD(device, others.data(), bytes));
  EXPECT_DRIVER(cuMemcpyDtoA(a, 800, device, 1200));
  std::memcpy(values.data() + 200, others.data(), 1200);
  std::memcpy(pinned, others.data(), bytes);
  EXPECT_DRIVER(cuMemcpyHtoAAsync(a, 4, pinned + 9, 80, stream));
  std::memcpy(values.data() + 1, others.data() + 9, 80);
  EXPECT_DRIVER(cuMemcpyHtoAAsync(a, 3000, others.data(), 1000, stream));
  std::memcpy(values.data() + 750, others.data(), 1000);
  EXPECT_DRIVER(cuMemcpyAtoHAsync(pinned, a, 0, bytes, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(std::memcmp(pinned, values.data(), bytes) == 0);
  EXPECT_DRIVER(cuMemcpyAtoHAsync(out.data(), a, 8, bytes - 8, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(std::memcmp(out.data(), values.data() + 2, bytes - 8) == 0);
  EXPECT(cuMemcpyHtoA(a, 4, values.data(), bytes) != CUDA_SUCCESS);
  EXPECT(cuMemcpyAtoH(out.data(), a, bytes, 4) != CUDA_SUCCESS);
  EXPECT_DRIVER(cuArrayDestroy(a));
  EXPECT_DRIVER(cuArrayDestroy(b));
  EXPECT_DRIVER(cuMemFree(device));
  EXPECT_OK(cudaFreeHost(pinned));
}

/// Rectangles go into an array and come back from each kind of memory.
static void rectangles(CUstream stream) {
  constexpr std::size_t w = 301, h = 77;
  const std::vector<int> values = numbers(w * h, -100);
  CUarray a = make(w, h, 0), b = make(w, h, 0);
  CUDA_MEMCPY2D in{}, inside{}, out{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = values.data(), in.srcPitch = w * 4;
  in.dstMemoryType = CU_MEMORYTYPE_ARRAY, in.dstArray = a;
  in.WidthInBytes = w * 4, in.Height = h;
  EXPECT_DRIVER(cuMemcpy2D(&in));
  inside.srcMemoryType = inside.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  inside.srcArray = a, inside.dstArray = b;
  inside.srcXInBytes = 40, inside.srcY = 5, inside.dstXInBytes = 4, inside.dstY = 1;
  inside.WidthInBytes = 800, inside.Height = 60;
  EXPECT_DRIVER(cuMemcpy2DAsync(&inside, stream));
  std::vector<int> back(200 * 60);
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY, out.srcArray = b, out.srcXInBytes = 4, out.srcY = 1;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = back.data(), out.dstPitch = 800;
  out.WidthInBytes = 800, out.Height = 60;
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT_DRIVER(cuMemcpy2DUnaligned(&out));
  bool same = true;
  for (std::size_t y = 0; y < 60; ++y) same = same && std::memcmp(&back[y * 200], &values[(y + 5) * w + 10], 800) == 0;
  EXPECT(same);
  in.Height = h + 1;
  EXPECT(cuMemcpy2D(&in) != CUDA_SUCCESS);
  EXPECT_DRIVER(cuArrayDestroy(a));
  EXPECT_DRIVER(cuArrayDestroy(b));
}

/// A box of several MiB, or layers, through all kinds of memory.
static void boxes(CUstream stream, unsigned flags) {
  const std::size_t w = 256, h = 128, d = 65, bytes = w * h * d * 4;
  const std::vector<int> values = numbers(w * h * d, 9);
  std::vector<int> back(w * h * d);
  CUarray a = make(w, h, d, flags), b = make(w, h, d, flags);
  CUdeviceptr device = 0;
  int* pinned = nullptr;
  EXPECT_DRIVER(cuMemAlloc(&device, bytes));
  EXPECT_OK(cudaMallocHost(&pinned, bytes));
  CUDA_MEMCPY3D copy{};
  copy.WidthInBytes = w * 4, copy.Height = h, copy.Depth = d;
  copy.srcPitch = copy.dstPitch = w * 4, copy.srcHeight = copy.dstHeight = h;
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = values.data();
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = a;
  EXPECT_DRIVER(cuMemcpy3DAsync(&copy, stream));
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = a, copy.dstArray = b;
  EXPECT_DRIVER(cuMemcpy3DAsync(&copy, stream));
  copy.srcArray = b, copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = device;
  EXPECT_DRIVER(cuMemcpy3DAsync(&copy, stream));
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = pinned;
  EXPECT_DRIVER(cuMemcpy3DAsync(&copy, stream));
  EXPECT_DRIVER(cuStreamSynchronize(stream));
  EXPECT(std::memcmp(pinned, values.data(), bytes) == 0);
  EXPECT_DRIVER(cuMemcpyDtoH(back.data(), device, bytes));
  EXPECT(back == values);
  back.assign(back.size(), 0);
  copy.dstHost = back.data();
  EXPECT_DRIVER(cuMemcpy3D(&copy));
  EXPECT(back == values);
  // A box inside, from pageable memory.
  copy = {};
  copy.WidthInBytes = 100, copy.Height = 20, copy.Depth = 10;
  copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = values.data(), copy.srcPitch = 100, copy.srcHeight = 20;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = a;
  copy.dstXInBytes = 12, copy.dstY = 30, copy.dstZ = 50;
  EXPECT_DRIVER(cuMemcpy3D(&copy));
  CUDA_MEMCPY3D out = copy;
  out.srcMemoryType = CU_MEMORYTYPE_ARRAY, out.srcArray = a, out.srcXInBytes = 12, out.srcY = 30, out.srcZ = 50;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = back.data(), out.dstPitch = 100, out.dstHeight = 20;
  out.dstXInBytes = out.dstY = out.dstZ = 0;
  EXPECT_DRIVER(cuMemcpy3D(&out));
  EXPECT(std::memcmp(back.data(), values.data(), 100 * 20 * 10) == 0);
  EXPECT_DRIVER(cuArrayDestroy(a));
  EXPECT_DRIVER(cuArrayDestroy(b));
  EXPECT_DRIVER(cuMemFree(device));
  EXPECT_OK(cudaFreeHost(pinned));
}

/// Each level of a mipmapped array is an array.
static void levels() {
  CUDA_ARRAY3D_DESCRIPTOR descriptor{64, 32, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0};
  CUmipmappedArray mipmap = nullptr;
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &descriptor, 4));
  for (unsigned level = 0; level < 4; ++level) {
    CUarray array = nullptr;
    EXPECT_DRIVER(cuMipmappedArrayGetLevel(&array, mipmap, level));
    EXPECT_DRIVER(cuArray3DGetDescriptor(&descriptor, array));
    EXPECT(descriptor.Width == 64u >> level && descriptor.Height == 32u >> level);
    const std::vector<int> values = numbers(descriptor.Width * descriptor.Height, int(level));
    std::vector<int> back(values.size());
    CUDA_MEMCPY2D copy{};
    copy.WidthInBytes = descriptor.Width * 4, copy.Height = descriptor.Height;
    copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = values.data(), copy.srcPitch = copy.WidthInBytes;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY, copy.dstArray = array;
    EXPECT_DRIVER(cuMemcpy2D(&copy));
    copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = array;
    copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = back.data(), copy.dstPitch = copy.WidthInBytes;
    EXPECT_DRIVER(cuMemcpy2D(&copy));
    EXPECT(back == values);
  }
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  CUstream stream = nullptr;
  EXPECT_DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  oneDimension(stream);
  rectangles(stream);
  boxes(stream, 0);
  boxes(stream, CUDA_ARRAY3D_LAYERED);
  levels();
  EXPECT_DRIVER(cuStreamDestroy(stream));
  return verdict();
}
