// Launches of clusters through the driver API: shapes, the largest sizes, what is refused, scheduling policies and what the occupancy functions answer.
// conformance: flags="-lcuda -arch=sm_90" judges=itself
#include <vector>

#include "stream_memory.h"

__global__ void shape(unsigned* out) {
  unsigned rank, size;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  if (threadIdx.x == 0) out[blockIdx.x] = size * 100 + rank;
}
__global__ __cluster_dims__(2, 1, 1) void fixedShape(unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = 1;
}

struct Launch {
  CUlaunchAttribute attributes[3] = {};
  CUlaunchConfig config{};
  explicit Launch(unsigned grid, unsigned cluster) {
    config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32, config.blockDimY = config.blockDimZ = 1;
    config.attrs = attributes;
    if (cluster == 0) return;
    CUlaunchAttribute& one = next();
    one.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    one.value.clusterDim.x = cluster;
    one.value.clusterDim.y = one.value.clusterDim.z = 1;
  }
  CUlaunchAttribute& next() { return attributes[config.numAttrs++]; }
};

CUfunction functionOf(void (*kernel)(unsigned*)) {
  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(kernel)));
  return function;
}

CUdeviceptr out = 0;

bool runs(CUfunction kernel, const Launch& launch) {
  void* arguments[] = {&out};
  const CUresult status = cuLaunchKernelEx(&launch.config, kernel, arguments, nullptr);
  return status == CUDA_SUCCESS && cuCtxSynchronize() == CUDA_SUCCESS;
}

bool hasShape(unsigned blocks, unsigned cluster) {
  std::vector<unsigned> host(blocks);
  OK(cuMemcpyDtoH(host.data(), out, blocks * 4));
  for (unsigned i = 0; i < blocks; ++i) {
    if (host[i] != cluster * 100 + i % cluster) return false;
  }
  return true;
}

void sizes(CUfunction kernel) {
  for (const unsigned cluster : {1u, 2u, 4u, 8u}) {
    EXPECT(runs(kernel, Launch(16, cluster)));
    EXPECT(hasShape(16, cluster));
  }
  EXPECT(!runs(kernel, Launch(15, 2)));
  EXPECT(!runs(kernel, Launch(16, 16)));
  OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  EXPECT(runs(kernel, Launch(16, 16)));
  EXPECT(hasShape(16, 16));
  EXPECT(!runs(kernel, Launch(32, 32)));
  OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
}

void policies(CUfunction kernel) {
  for (const auto policy : {CU_CLUSTER_SCHEDULING_POLICY_DEFAULT, CU_CLUSTER_SCHEDULING_POLICY_SPREAD, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING}) {
    Launch launch(16, 4);
    CUlaunchAttribute& one = launch.next();
    one.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE;
    one.value.clusterSchedulingPolicyPreference = policy;
    EXPECT(runs(kernel, launch));
    EXPECT(hasShape(16, 4));
  }
  Launch cooperative(8, 4);
  CUlaunchAttribute& one = cooperative.next();
  one.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  one.value.cooperative = 1;
  EXPECT(runs(kernel, cooperative));
  EXPECT(hasShape(8, 4));
}

void occupancy(CUfunction kernel) {
  const Launch any(16, 0), pairs(16, 2), eights(16, 8);
  int largest = 0, few = 0, many = 0;
  OK(cuOccupancyMaxPotentialClusterSize(&largest, kernel, &any.config));
  EXPECT(largest == 8);
  OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(cuOccupancyMaxPotentialClusterSize(&largest, kernel, &any.config));
  EXPECT(largest == 16);
  OK(cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0));
  OK(cuOccupancyMaxActiveClusters(&many, kernel, &pairs.config));
  OK(cuOccupancyMaxActiveClusters(&few, kernel, &eights.config));
  EXPECT(few > 0 && many >= few * 4);
  EXPECT(cuOccupancyMaxActiveClusters(nullptr, kernel, &pairs.config) != CUDA_SUCCESS);
}

void required() {
  const CUfunction kernel = functionOf(fixedShape);
  int width = 0, mustBeSet = 0;
  OK(cuFuncGetAttribute(&width, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, kernel));
  EXPECT(width == 2);
  OK(cuFuncGetAttribute(&mustBeSet, CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET, kernel));
  EXPECT(runs(kernel, Launch(8, 0)));
  EXPECT(runs(kernel, Launch(8, 2)));
  EXPECT(!runs(kernel, Launch(8, 4)));
}

int main() {
  useContext();
  OK(cuMemAlloc(&out, 256));
  const CUfunction kernel = functionOf(shape);
  sizes(kernel);
  policies(kernel);
  occupancy(kernel);
  required();
  OK(cuMemFree(out));
  return verdict();
}
