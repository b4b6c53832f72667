// Arrays take memory of the GPU, and give it back when they are destroyed or their context ends; what does not fit is refused.
// conformance: flags=-lcuda judges=itself alone=yes memory=2GiB
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define EXPECT_DRIVER(...) expect((__VA_ARGS__) == CUDA_SUCCESS, #__VA_ARGS__, __LINE__)

constexpr std::size_t MiB = std::size_t{1} << 20;

static std::size_t freeBytes() {
  std::size_t free = 0, total = 0;
  EXPECT_DRIVER(cuMemGetInfo(&free, &total));
  return free;
}

static CUresult make(CUarray* array, std::size_t width, std::size_t height, std::size_t depth) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{width, height, depth, CU_AD_FORMAT_FLOAT, 4, 0};
  return cuArray3DCreate(array, &descriptor);
}

int main() {
  CUdevice device = 0;
  CUcontext context = nullptr, other = nullptr;
  EXPECT_DRIVER(cuInit(0));
  EXPECT_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
  EXPECT_DRIVER(cuCtxSetCurrent(context));
  CUarray first = nullptr;
  EXPECT_DRIVER(make(&first, 4096, 4096, 0));  // 256 MiB
  const std::size_t with = freeBytes();
  EXPECT_DRIVER(cuArrayDestroy(first));
  const std::size_t without = freeBytes();
  EXPECT(without - with >= 256 * MiB && without - with <= 300 * MiB);

  std::size_t total = 0;
  EXPECT_DRIVER(cuDeviceTotalMem(&total, device));
  std::vector<CUarray> arrays;
  CUresult status = CUDA_SUCCESS;
  for (CUarray array = nullptr; (status = make(&array, 1024, 1024, 16)) == CUDA_SUCCESS;) {
    arrays.push_back(array);
    if (arrays.size() > total / (256 * MiB)) break;
  }
  EXPECT(status == CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT(arrays.size() * 256 * MiB <= total);
  EXPECT(freeBytes() < 300 * MiB);
  for (CUarray array : arrays) EXPECT_DRIVER(cuArrayDestroy(array));
  EXPECT(freeBytes() + 64 * MiB >= without);

  // A mipmapped array has a third more, and its levels cannot be destroyed.
  const CUDA_ARRAY3D_DESCRIPTOR descriptor{4096, 4096, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CUmipmappedArray mipmap = nullptr;
  EXPECT_DRIVER(cuMipmappedArrayCreate(&mipmap, &descriptor, 13));
  const std::size_t taken = without - freeBytes();
  EXPECT(taken >= 340 * MiB && taken <= 420 * MiB);
  EXPECT_DRIVER(cuMipmappedArrayDestroy(mipmap));
  EXPECT(freeBytes() + 64 * MiB >= without);

  // Larger than the GPU's limits.
  CUarray none = nullptr;
  EXPECT(make(&none, std::size_t{1} << 40, std::size_t{1} << 40, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(make(&none, 1u << 30, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  EXPECT(make(&none, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);

  // The end of a context.
  EXPECT_DRIVER(cuCtxCreate(&other, nullptr, 0, device));
  EXPECT_DRIVER(make(&first, 4096, 4096, 0));
  EXPECT_DRIVER(cuCtxDestroy(other));
  EXPECT_DRIVER(cuCtxSetCurrent(context));
  EXPECT(freeBytes() + 64 * MiB >= without);
  EXPECT_DRIVER(cuDevicePrimaryCtxRelease(device));
  return verdict();
}
