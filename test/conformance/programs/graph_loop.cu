// Conditional nodes whose body runs again: a loop that a kernel in its body ends, and one of several bodies that a kernel before it selects. Without support the program ends.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include "graphs.h"

constexpr int kRounds = 10, kBodies = 4, kTaken = 2;

__global__ void countDown(int* left, cudaGraphConditionalHandle handle) {
#ifdef __CUDA_ARCH__
  cudaGraphSetConditional(handle, --*left != 0);
#endif
}

__global__ void choose(const int* which, cudaGraphConditionalHandle handle) {
#ifdef __CUDA_ARCH__
  cudaGraphSetConditional(handle, *which);
#endif
}

__global__ void addOne(int* x) { ++*x; }

static cudaGraphNode_t addKernel(cudaGraph_t graph, const cudaGraphNode_t* after, void* kernel, void** arguments) {
  cudaGraphNode_t node = nullptr;
  cudaKernelNodeParams params{};
  params.func = kernel, params.gridDim = dim3(1), params.blockDim = dim3(1), params.kernelParams = arguments;
  EXPECT_OK(cudaGraphAddKernelNode(&node, graph, after, after != nullptr, &params));
  return node;
}

/// The bodies of a new conditional node.
static cudaGraph_t* addConditional(cudaGraph_t graph, const cudaGraphNode_t* after, cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                                   unsigned bodies) {
  cudaGraphNode_t node = nullptr;
  cudaGraphNodeParams params{};
  params.type = cudaGraphNodeTypeConditional;
  params.conditional.handle = handle, params.conditional.type = type, params.conditional.size = bodies;
  EXPECT_OK(cudaGraphAddNode(&node, graph, after, nullptr, after != nullptr, &params));
  return params.conditional.phGraph_out;
}

static void set(int* device, int value) { EXPECT_OK(cudaMemcpy(device, &value, sizeof value, cudaMemcpyHostToDevice)); }

static void loop(cudaGraph_t graph, cudaGraphConditionalHandle handle, int* left, int* sum) {
  cudaGraph_t* const body = addConditional(graph, nullptr, handle, cudaGraphCondTypeWhile, 1);
  if (body == nullptr) return EXPECT(!"a body");
  void *ofSum[] = {&sum}, *ofCount[] = {&left, &handle};
  const cudaGraphNode_t added = addKernel(body[0], nullptr, reinterpret_cast<void*>(addOne), ofSum);
  addKernel(body[0], &added, reinterpret_cast<void*>(countDown), ofCount);
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  set(sum, 0);
  for (int launch = 1; launch <= 3; ++launch) {
    set(left, kRounds);
    EXPECT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(deviceHas(left, 1, 0) && deviceHas(sum, 1, launch * kRounds));
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
}

/// Each value runs one body; a value beyond the last runs none.
static void selection(int* which, int* sums) {
  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle handle = 0;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  void* ofChoice[] = {&which, &handle};
  const cudaGraphNode_t chosen = addKernel(graph, nullptr, reinterpret_cast<void*>(choose), ofChoice);
  cudaGraph_t* const bodies = addConditional(graph, &chosen, handle, cudaGraphCondTypeSwitch, kBodies);
  if (bodies == nullptr) return EXPECT(!"bodies");
  for (int i = 0; i < kBodies; ++i) {
    int* const sum = sums + i;
    void* ofSum[] = {const_cast<int**>(&sum)};
    addKernel(bodies[i], nullptr, reinterpret_cast<void*>(addOne), ofSum);
  }
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaMemset(sums, 0, kBodies * sizeof(int)));
  for (const int value : {kTaken, kBodies, kTaken}) {
    set(which, value);
    EXPECT_OK(cudaGraphLaunch(exec, nullptr));
    EXPECT_OK(cudaDeviceSynchronize());
  }
  for (int i = 0; i < kBodies; ++i) EXPECT(deviceHas(sums + i, 1, i == kTaken ? 2 : 0));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

int main() {
  int* numbers = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphConditionalHandle handle = 0;
  EXPECT_OK(cudaMalloc(&numbers, 16 * sizeof(int)));
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  const cudaError_t supported = cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault);
  if (supported == cudaErrorNotSupported) return verdict();
  EXPECT_OK(supported);
  loop(graph, handle, numbers, numbers + 1);
  EXPECT_OK(cudaGraphDestroy(graph));
  selection(numbers + 2, numbers + 3);
  EXPECT_OK(cudaFree(numbers));
  return verdict();
}
