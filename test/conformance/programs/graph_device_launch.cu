// Graphs that a kernel of another graph launches: at once, behind it, and the running one again. Without support the program ends.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include "graphs.h"

__global__ void addOne(int* x) { ++*x; }

__global__ void launchOther(cudaGraphExec_t other, int* x, bool behind, int* error) {
#ifdef __CUDA_ARCH__
  *x = 10;
  __threadfence();
  *error = cudaGraphLaunch(other, behind ? cudaStreamGraphTailLaunch : cudaStreamGraphFireAndForget);
#endif
}

__global__ void launchAgain(int* x, int* error) {
#ifdef __CUDA_ARCH__
  *error = ++*x < 5 ? cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch) : cudaSuccess;
#endif
}

/// Whether kernels can launch graphs here.
static bool supported(int* numbers) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaMemsetParams params{};
  params.dst = numbers, params.elementSize = 4, params.width = 1, params.height = 1;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &params));
  const cudaError_t status = cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch);
  EXPECT_OK(cudaGraphDestroy(graph));
  if (status == cudaErrorNotSupported) return false;
  EXPECT_OK(status);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  return true;
}

/// An executable graph of one kernel, on the GPU.
static cudaGraphExec_t graphOf(void* kernel, void** arguments) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaKernelNodeParams params{};
  params.func = kernel, params.gridDim = dim3(1), params.blockDim = dim3(1), params.kernelParams = arguments;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagDeviceLaunch));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT_OK(cudaGraphUpload(exec, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  return exec;
}

/// Launches a graph whose kernel leaves `value` in the first number, and no error in the second.
static void leaves(int value, int* numbers, void* kernel, void** arguments) {
  const cudaGraphExec_t exec = graphOf(kernel, arguments);
  EXPECT_OK(cudaMemset(numbers, 0, 2 * sizeof(int)));
  EXPECT_OK(cudaGraphLaunch(exec, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(deviceHas(numbers, 1, value) && deviceHas(numbers + 1, 1, cudaSuccess));
  EXPECT_OK(cudaGraphExecDestroy(exec));
}

int main() {
  int* numbers = nullptr;
  EXPECT_OK(cudaMalloc(&numbers, 2 * sizeof(int)));
  if (!supported(numbers)) return verdict();
  int* error = numbers + 1;
  void* ofOne[] = {&numbers};
  cudaGraphExec_t other = graphOf(reinterpret_cast<void*>(addOne), ofOne);
  for (bool behind : {false, true}) {
    void* arguments[] = {&other, &numbers, &behind, &error};
    leaves(11, numbers, reinterpret_cast<void*>(launchOther), arguments);
  }
  void* ofAgain[] = {&numbers, &error};
  leaves(5, numbers, reinterpret_cast<void*>(launchAgain), ofAgain);
  EXPECT_OK(cudaGraphExecDestroy(other));
  EXPECT_OK(cudaFree(numbers));
  return verdict();
}
