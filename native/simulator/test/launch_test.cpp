// Launches of kernels from PTX text, and launches that are refused.
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

TEST_CASE("a kernel adds vectors, however it is launched") {
  usePrimaryContext();
  const CUfunction add = functionOf(kKernels, "add");
  constexpr unsigned n = 1000;
  std::vector<float> a(n), b(n), c(n);
  for (unsigned i = 0; i < n; ++i) a[i] = static_cast<float>(i), b[i] = 2 * a[i];
  CUdeviceptr x = 0, y = 0, z = 0;
  OK(DRIVER(cuMemAlloc_v2)(&x, n * 4));
  OK(DRIVER(cuMemAlloc_v2)(&y, n * 4));
  OK(DRIVER(cuMemAlloc_v2)(&z, n * 4));
  OK(DRIVER(cuMemcpyHtoD_v2)(x, a.data(), n * 4));
  OK(DRIVER(cuMemcpyHtoD_v2)(y, b.data(), n * 4));
  unsigned count = n;
  void* parameters[] = {&x, &y, &z, &count};
  OK(DRIVER(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(c.data(), z, n * 4));
  bool right = true;
  for (unsigned i = 0; i < n; ++i) right = right && c[i] == 3 * a[i];
  CHECK(right);

  struct {
    CUdeviceptr x, y, z;
    unsigned n;
  } packed{x, x, z, n};
  std::size_t size = 28;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  OK(DRIVER(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  OK(DRIVER(cuMemcpyDtoH_v2)(c.data(), z, n * 4));
  CHECK(c[999] == 1998.0f);
  size = 36;
  EXPECT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
         DRIVER(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, extra));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, nullptr, nullptr));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuLaunchKernel)(add, 4, 1, 1, 256, 1, 1, 0, nullptr, parameters, extra));

  CUlaunchConfig config{};
  config.gridDimX = 4, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 256, config.blockDimY = config.blockDimZ = 1;
  OK(DRIVER(cuLaunchKernelEx)(&config, add, parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoH_v2)(c.data(), z, n * 4));
  CHECK(c[999] == 2997.0f);
  OK(DRIVER(cuMemFree_v2)(x));
  OK(DRIVER(cuMemFree_v2)(y));
  OK(DRIVER(cuMemFree_v2)(z));
}

CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                unsigned bz, unsigned shared = 0) {
  return DRIVER(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, nullptr, nullptr, nullptr);
}

TEST_CASE("a wrong shape is refused") {
  usePrimaryContext();
  const CUfunction nothing = functionOf(kKernels, "nothing");
  OK(launch(nothing, 1, 1, 1, 1, 1, 1));
  OK(launch(nothing, 1, 1, 1, 1024, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 0, 1, 1, 1, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 1, 0, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 1, 1025, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 1, 1, 1, 65));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 1, 32, 32, 2));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 65536, 1, 1, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 65536, 1, 1, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, launch(nothing, 1, 1, 1, 32, 1, 1, 48 * 1024 + 1));
  OK(DRIVER(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                227 * 1024));
  OK(launch(nothing, 1, 1, 1, 32, 1, 1, 227 * 1024));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    227 * 1024 + 1));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, launch(nullptr, 1, 1, 1, 1, 1, 1));
  EXPECT(
      CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
      DRIVER(cuLaunchCooperativeKernel)(nothing, 1000000, 1, 1, 1024, 1, 1, 0, nullptr, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
}

CUlaunchConfig clusterOf(CUlaunchAttribute& attribute, unsigned grid, unsigned block,
                         unsigned size) {
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {size, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = block, config.blockDimY = config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return config;
}

CUresult launchClusters(CUfunction f, unsigned grid, unsigned size) {
  CUlaunchAttribute attribute{};
  const CUlaunchConfig config = clusterOf(attribute, grid, 32, size);
  return DRIVER(cuLaunchKernelEx)(&config, f, nullptr, nullptr);
}

int activeClusters(CUfunction f, unsigned block, unsigned size) {
  CUlaunchAttribute attribute{};
  const CUlaunchConfig config = clusterOf(attribute, 16, block, size);
  int count = -1;
  OK(DRIVER(cuOccupancyMaxActiveClusters)(&count, f, &config));
  return count;
}

TEST_CASE("clusters are launched where the GPU has them") {
  usePrimaryContext();
  const CUfunction nothing = functionOf(kKernels, "nothing");
  OK(launchClusters(nothing, 8, 8));
  EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, launchClusters(nothing, 5, 2));
  EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, launchClusters(nothing, 8, 0));
  EXPECT(CUDA_ERROR_INVALID_CLUSTER_SIZE, launchClusters(nothing, 16, 16));
  CHECK(activeClusters(nothing, 128, 1) == 1056);
  CHECK(activeClusters(nothing, 128, 4) == 248);
  CHECK(activeClusters(nothing, 1024, 8) == 30);
  OK(DRIVER(cuFuncSetAttribute)(nothing, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(launchClusters(nothing, 16, 16));
  CHECK(activeClusters(nothing, 128, 16) == 58);
  OK(DRIVER(cuCtxSynchronize)());
}

TEST_CASE("a function tells its parameters, attributes and occupancy") {
  usePrimaryContext();
  const CUfunction add = functionOf(kKernels, "add");
  std::size_t offset = 0, size = 0;
  OK(DRIVER(cuFuncGetParamInfo)(add, 3, &offset, &size));
  CHECK(offset == 24);
  CHECK(size == 4);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuFuncGetParamInfo)(add, 4, &offset, &size));
  int value = 0;
  OK(DRIVER(cuFuncGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, add));
  CHECK(value == 1024);
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, add, 256, 0));
  CHECK(value == 8);
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, add, 128, 20000));
  CHECK(value == 11);
  OK(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessor)(&value, add, 128, 60000));
  CHECK(value == 0);
  OK(DRIVER(cuOccupancyAvailableDynamicSMemPerBlock)(&size, add, 8, 64));
  CHECK(size == 29184);
  int grid = 0;
  OK(DRIVER(cuOccupancyMaxPotentialBlockSize)(&grid, &value, add, nullptr, 0, 0));
  CHECK(grid == 264);
  CHECK(value == 1024);
  const char* name = nullptr;
  OK(DRIVER(cuFuncGetName)(&name, add));
  CHECK(std::string(name) == "add");
}

}  // namespace
