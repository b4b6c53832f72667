// Copies between contexts of one GPU, and the occupancy of clusters.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

/// Memory of a second context is reached through the context's name.
static void betweenContexts(CUcontext first) {
  CUcontext second = nullptr;
  CUdeviceptr from = 0, to = 0;
  EXPECT_OK(cuMemAlloc(&to, 64));
  EXPECT_OK(cuCtxCreate(&second, nullptr, 0, 0));
  EXPECT_OK(cuMemAlloc(&from, 64));
  EXPECT_OK(cuMemsetD32(from, 11, 16));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemcpyPeer(to, first, from, second, 64));
  EXPECT_OK(cuCtxSetCurrent(first));
  EXPECT(valueAt(to + 60) == 11);
  EXPECT_OK(cuMemsetD32(to, 12, 16));
  EXPECT_OK(cuCtxSynchronize());
  EXPECT_OK(cuMemcpyPeerAsync(from, second, to, first, 64, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT_OK(cuCtxSetCurrent(second));
  EXPECT(valueAt(from + 60) == 12);
  EXPECT_OK(cuCtxDestroy(second));
  EXPECT_OK(cuCtxSetCurrent(first));
}

static void clusters() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoadData(&module, kTwoKernels));
  EXPECT_OK(cuModuleGetFunction(&function, module, "add"));
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 2;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  CUlaunchConfig config{};
  config.gridDimX = 8;
  config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 128;
  config.blockDimY = config.blockDimZ = 1;
  int size = 0, count = 0;
  EXPECT_OK(cuOccupancyMaxPotentialClusterSize(&size, function, &config));
  EXPECT(size == 8);
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_OK(cuOccupancyMaxActiveClusters(&count, function, &config));
  EXPECT(count > 0);
  EXPECT_OK(cuModuleUnload(module));
}

int main() {
  CUcontext context = startDriver();
  betweenContexts(context);
  clusters();
  return verdict();
}
