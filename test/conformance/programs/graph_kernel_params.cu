// Parameters of kernel nodes through the driver API: given as pointers and as one buffer, read back, and changed in the graph.
// conformance: judges=itself flags=-lcuda
#include <cuda.h>

#include "graphs.h"

struct Mixed {
  char c;
  double d;
  short list[3];
};

extern "C" __global__ void gather(double* out, Mixed mixed, int by) {
  out[threadIdx.x] = mixed.d + mixed.c + mixed.list[0] + mixed.list[2] + by;
}

static bool ok(CUresult result) { return result == CUDA_SUCCESS; }

static void gives(CUgraph graph, const double* d, double value) {
  CUgraphExec exec = nullptr;
  double host[4]{};
  EXPECT(ok(cuGraphInstantiateWithFlags(&exec, graph, 0)));
  EXPECT(ok(cuGraphLaunch(exec, nullptr)));
  EXPECT(ok(cuCtxSynchronize()));
  EXPECT_OK(cudaMemcpy(host, d, sizeof host, cudaMemcpyDeviceToHost));
  for (const double each : host) EXPECT(each == value);
  EXPECT(ok(cuGraphExecDestroy(exec)));
}

int main() {
  double* d = nullptr;
  EXPECT_OK(cudaMalloc(&d, 4 * sizeof(double)));
  cudaFunction_t symbol = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&symbol, reinterpret_cast<void*>(gather)));
  Mixed mixed{3, 0.25, {10, 20, 30}};
  int by = 1000;
  void* pointers[] = {&d, &mixed, &by};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = reinterpret_cast<CUfunction>(symbol);
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = 4, params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = pointers;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  EXPECT(ok(cuGraphCreate(&graph, 0)));
  EXPECT(ok(cuGraphAddKernelNode(&node, graph, nullptr, 0, &params)));
  gives(graph, d, 1043.25);

  CUDA_KERNEL_NODE_PARAMS known{};
  EXPECT(ok(cuGraphKernelNodeGetParams(node, &known)));
  EXPECT(known.gridDimX == 1 && known.blockDimX == 4 && known.sharedMemBytes == 0);
  EXPECT(known.kernelParams != nullptr);
  if (known.kernelParams != nullptr) {
    EXPECT(*static_cast<double**>(known.kernelParams[0]) == d);
    EXPECT(static_cast<Mixed*>(known.kernelParams[1])->list[2] == 30);
    EXPECT(*static_cast<int*>(known.kernelParams[2]) == 1000);
  }
  by = 2000;
  mixed.c = 4;
  EXPECT(ok(cuGraphKernelNodeSetParams(node, &params)));
  gives(graph, d, 2044.25);

  struct {
    double* out;
    Mixed mixed;
    int by;
  } buffer{d, {5, 0.5, {1, 0, 2}}, 7};
  std::size_t bytes = sizeof d + sizeof mixed + sizeof by;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  params.kernelParams = nullptr;
  params.extra = extra;
  EXPECT(ok(cuGraphKernelNodeSetParams(node, &params)));
  gives(graph, d, 15.5);
  EXPECT(ok(cuGraphDestroy(graph)));
  return verdict();
}
