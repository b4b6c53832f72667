// An executable graph gets other parameters: as a whole from a graph of the same shape, and node by node; nodes are switched off and on.
// conformance: judges=itself
#include "graphs.h"

constexpr int n = 256;
static int *d = nullptr, *e = nullptr;

struct Built {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t fill = nullptr, add = nullptr, copy = nullptr;
};

static cudaKernelNodeParams kernelParams(void** arguments) {
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(addTo);
  kernel.gridDim = dim3(4), kernel.blockDim = dim3(64), kernel.kernelParams = arguments;
  return kernel;
}

static cudaMemsetParams fillParams(unsigned value) {
  cudaMemsetParams memset{};
  memset.dst = d, memset.value = value, memset.elementSize = 4, memset.width = n, memset.height = 1;
  return memset;
}

static Built build(unsigned value, int by) {
  Built built;
  int count = n;
  void* arguments[] = {&d, &count, &by};
  const cudaKernelNodeParams kernel = kernelParams(arguments);
  const cudaMemsetParams memset = fillParams(value);
  EXPECT_OK(cudaGraphCreate(&built.graph, 0));
  EXPECT_OK(cudaGraphAddMemsetNode(&built.fill, built.graph, nullptr, 0, &memset));
  EXPECT_OK(cudaGraphAddKernelNode(&built.add, built.graph, &built.fill, 1, &kernel));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&built.copy, built.graph, &built.add, 1, e, d, n * sizeof(int), cudaMemcpyDeviceToDevice));
  return built;
}

static void gives(cudaGraphExec_t exec, int value) {
  EXPECT_OK(cudaGraphLaunch(exec, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(deviceHas(e, n, value));
}

int main() {
  EXPECT_OK(cudaMalloc(&d, n * sizeof(int)));
  EXPECT_OK(cudaMalloc(&e, n * sizeof(int)));
  const Built first = build(5, 1), second = build(50, 2);
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, first.graph, 0));
  gives(exec, 6);
  cudaGraphExecUpdateResultInfo info{};
  EXPECT_OK(cudaGraphExecUpdate(exec, second.graph, &info));
  EXPECT(info.result == cudaGraphExecUpdateSuccess);
  gives(exec, 52);

  int count = n, by = 8;
  void* arguments[] = {&d, &count, &by};
  const cudaKernelNodeParams kernel = kernelParams(arguments);
  EXPECT_OK(cudaGraphExecKernelNodeSetParams(exec, first.add, &kernel));
  gives(exec, 58);
  const cudaMemsetParams memset = fillParams(100);
  EXPECT_OK(cudaGraphExecMemsetNodeSetParams(exec, first.fill, &memset));
  gives(exec, 108);

  unsigned enabled = 9;
  EXPECT_OK(cudaGraphNodeGetEnabled(exec, first.add, &enabled));
  EXPECT(enabled == 1);
  EXPECT_OK(cudaGraphNodeSetEnabled(exec, first.add, 0));
  gives(exec, 100);
  EXPECT_OK(cudaGraphNodeGetEnabled(exec, first.add, &enabled));
  EXPECT(enabled == 0);
  EXPECT_OK(cudaGraphNodeSetEnabled(exec, first.add, 1));
  gives(exec, 108);

  // A node of the graph itself: executable graphs made before keep what they had.
  by = 1000;
  EXPECT_OK(cudaGraphKernelNodeSetParams(first.add, &kernel));
  gives(exec, 108);
  EXPECT_OK(cudaGraphExecUpdate(exec, first.graph, &info));
  gives(exec, 1005);

  // Another shape is refused, and changes nothing.
  cudaGraphNode_t more = nullptr;
  EXPECT_OK(cudaGraphAddEmptyNode(&more, second.graph, &second.copy, 1));
  EXPECT(cudaGraphExecUpdate(exec, second.graph, &info) == cudaErrorGraphExecUpdateFailure);
  EXPECT(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  gives(exec, 1005);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(first.graph));
  EXPECT_OK(cudaGraphDestroy(second.graph));
  return verdict();
}
