// Arrays of one and two dimensions by the calls that have no depth, their descriptors, and a texture reference to rows of memory by the call of CUDA 3.2.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

static void check(std::size_t width, std::size_t height, CUarray_format format, unsigned channels, std::size_t elementBytes) {
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR wanted{width, height, format, channels};
  CUDA_ARRAY_DESCRIPTOR seen{};
  CUDA_ARRAY3D_DESCRIPTOR deep{};
  EXPECT_DRIVER(cuArrayCreate(&array, &wanted));
  EXPECT_DRIVER(cuArrayGetDescriptor(&seen, array));
  EXPECT(seen.Width == width && seen.Height == height && seen.Format == format && seen.NumChannels == channels);
  EXPECT_DRIVER(cuArray3DGetDescriptor(&deep, array));
  EXPECT(deep.Width == width && deep.Height == height && deep.Depth == 0 && deep.Format == format && deep.NumChannels == channels);
  const std::size_t row = width * elementBytes;
  std::vector<unsigned char> in(row), out(row);
  for (std::size_t i = 0; i < row; ++i) in[i] = i * 13 + height;
  EXPECT_DRIVER(cuMemcpyHtoA(array, 0, in.data(), row));
  EXPECT_DRIVER(cuMemcpyAtoH(out.data(), array, 0, row));
  EXPECT(in == out);
  EXPECT_DRIVER(cuArrayDestroy(array));
}

static void reference() {
  void* function = nullptr;
  CUtexref reference = nullptr;
  CUdeviceptr memory = 0, seen = 0;
  EXPECT_DRIVER(cuGetProcAddress("cuTexRefSetAddress2D", &function, 3020, 0, nullptr));
  const auto setAddress2D = reinterpret_cast<CUresult (*)(CUtexref, const CUDA_ARRAY_DESCRIPTOR*, CUdeviceptr, std::size_t)>(function);
  const CUDA_ARRAY_DESCRIPTOR rows{64, 16, CU_AD_FORMAT_FLOAT, 1};
  EXPECT_DRIVER(cuMemAlloc(&memory, 8192));
  EXPECT_DRIVER(cuTexRefCreate(&reference));
  EXPECT_DRIVER(cuTexRefSetFormat(reference, CU_AD_FORMAT_FLOAT, 1));
  EXPECT_DRIVER(setAddress2D(reference, &rows, memory, 512));
  EXPECT_DRIVER(cuTexRefGetAddress(&seen, reference));
  EXPECT(seen == memory);
  EXPECT_DRIVER(cuTexRefDestroy(reference));
  EXPECT_DRIVER(cuMemFree(memory));
}

int main() {
  EXPECT_OK(cudaFree(nullptr));
  check(1000, 0, CU_AD_FORMAT_SIGNED_INT8, 4, 4);
  check(77, 33, CU_AD_FORMAT_UNSIGNED_INT16, 1, 2);
  check(256, 256, CU_AD_FORMAT_FLOAT, 4, 16);
  check(5, 3, CU_AD_FORMAT_HALF, 2, 4);
  CUarray array = nullptr;
  const CUDA_ARRAY_DESCRIPTOR threeChannels{16, 16, CU_AD_FORMAT_FLOAT, 3};
  EXPECT(cuArrayCreate(&array, &threeChannels) != CUDA_SUCCESS);
  EXPECT(cuArrayGetDescriptor(nullptr, array) != CUDA_SUCCESS);
  reference();
  return verdict();
}
