// Child graphs and clones: a child is copied when it is added, a clone is independent, and its nodes are found by their originals.
// conformance: judges=itself
#include "graphs.h"

constexpr int n = 100;

static cudaGraphNode_t addKernel(cudaGraph_t graph, const cudaGraphNode_t* after, int* d, int by) {
  int count = n;
  void* arguments[] = {&d, &count, &by};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(addTo);
  kernel.gridDim = dim3(1), kernel.blockDim = dim3(128), kernel.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaGraphAddKernelNode(&node, graph, after, after != nullptr ? 1 : 0, &kernel));
  return node;
}

static std::size_t nodesOf(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &count));
  return count;
}

int main() {
  int* d = nullptr;
  EXPECT_OK(cudaMalloc(&d, n * sizeof(int)));
  EXPECT_OK(cudaMemset(d, 0, n * sizeof(int)));
  cudaGraph_t inner = nullptr, outer = nullptr, clone = nullptr, embedded = nullptr;
  EXPECT_OK(cudaGraphCreate(&inner, 0));
  EXPECT_OK(cudaGraphCreate(&outer, 0));
  const cudaGraphNode_t one = addKernel(inner, nullptr, d, 1);
  addKernel(inner, &one, d, 2);
  const cudaGraphNode_t ten = addKernel(outer, nullptr, d, 10);
  cudaGraphNode_t child = nullptr, again = nullptr;
  EXPECT_OK(cudaGraphAddChildGraphNode(&child, outer, &ten, 1, inner));
  EXPECT_OK(cudaGraphAddChildGraphNode(&again, outer, &child, 1, inner));
  addKernel(inner, nullptr, d, 1000);  // the children have copies
  EXPECT_OK(cudaGraphChildGraphNodeGetGraph(child, &embedded));
  EXPECT(nodesOf(inner) == 3 && nodesOf(embedded) == 2 && nodesOf(outer) == 3);
  runOnce(outer, nullptr);
  EXPECT(deviceHas(d, n, 16));

  EXPECT_OK(cudaGraphClone(&clone, outer));
  cudaGraphNode_t found = nullptr;
  EXPECT_OK(cudaGraphNodeFindInClone(&found, ten, clone));
  EXPECT(found != nullptr && found != ten);
  cudaGraphNodeType type = cudaGraphNodeTypeCount;
  EXPECT_OK(cudaGraphNodeGetType(found, &type));
  EXPECT(type == cudaGraphNodeTypeKernel);

  // A node in a child graph is found in the copy of the child only.
  cudaGraphNode_t inChild = nullptr, childOfClone = nullptr, none = nullptr;
  cudaGraph_t copied = nullptr;
  std::size_t first = 1;
  EXPECT_OK(cudaGraphGetNodes(embedded, &inChild, &first));
  EXPECT_OK(cudaGraphNodeFindInClone(&childOfClone, child, clone));
  EXPECT_OK(cudaGraphChildGraphNodeGetGraph(childOfClone, &copied));
  EXPECT(cudaGraphNodeFindInClone(&none, inChild, clone) == cudaErrorInvalidValue);
  EXPECT_OK(cudaGraphNodeFindInClone(&none, inChild, copied));
  cudaGraphExec_t exec = nullptr;
  EXPECT(cudaGraphInstantiate(&exec, embedded, 0) == cudaErrorNotSupported);
  EXPECT_OK(cudaGraphDestroy(inner));
  EXPECT_OK(cudaGraphDestroy(outer));
  addKernel(clone, &found, d, 100);
  runOnce(clone, nullptr);
  EXPECT(deviceHas(d, n, 132));
  EXPECT_OK(cudaGraphDestroy(clone));
  return verdict();
}
