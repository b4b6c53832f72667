// Copies between device and ordinary memory of the program in graphs: each launch reads and writes what is there when it runs, and the program sees plain copy nodes.
// conformance: judges=itself
#include <vector>

#include "graphs.h"

constexpr int n = 40'000;
static const std::size_t bytes = n * sizeof(int);

/// What is given comes back with one more, at each launch.
static void replay(cudaGraph_t graph, cudaStream_t stream, std::vector<int>& in, std::vector<int>& out) {
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 1; launch <= 5; ++launch) {
    in.assign(n, launch * 10);
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(all(out.data(), n, launch * 10 + 1));
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
}

/// The kinds of nodes that the program sees.
static void looksLikeCopies(cudaGraph_t graph) {
  std::size_t count = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &count));
  EXPECT(count == 3);
  std::vector<cudaGraphNode_t> nodes(count);
  EXPECT_OK(cudaGraphGetNodes(graph, nodes.data(), &count));
  int copies = 0, kernels = 0;
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type = cudaGraphNodeTypeCount;
    EXPECT_OK(cudaGraphNodeGetType(node, &type));
    copies += type == cudaGraphNodeTypeMemcpy;
    kernels += type == cudaGraphNodeTypeKernel;
  }
  EXPECT(copies == 2 && kernels == 1);
}

int main() {
  std::vector<int> in(n), out(n), others(n);
  int* d = nullptr;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr, clone = nullptr;
  EXPECT_OK(cudaMalloc(&d, bytes));
  EXPECT_OK(cudaStreamCreate(&stream));

  // Captured.
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  EXPECT_OK(cudaMemcpyAsync(d, in.data(), bytes, cudaMemcpyHostToDevice, stream));
  addTo<<<(n + 255) / 256, 256, 0, stream>>>(d, n, 1);
  EXPECT_OK(cudaMemcpyAsync(out.data(), d, bytes, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  looksLikeCopies(graph);
  replay(graph, stream, in, out);
  EXPECT_OK(cudaGraphClone(&clone, graph));
  EXPECT_OK(cudaGraphDestroy(graph));
  looksLikeCopies(clone);
  replay(clone, stream, in, out);
  EXPECT_OK(cudaGraphDestroy(clone));

  // Built by hand, then changed in the executable graph.
  cudaGraphNode_t up = nullptr, add = nullptr, down = nullptr;
  int count = n, by = 1;
  void* arguments[] = {&d, &count, &by};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(addTo);
  kernel.gridDim = dim3((n + 255) / 256), kernel.blockDim = dim3(256), kernel.kernelParams = arguments;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&up, graph, nullptr, 0, d, in.data(), bytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaGraphAddKernelNode(&add, graph, &up, 1, &kernel));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&down, graph, &add, 1, out.data(), d, bytes, cudaMemcpyDeviceToHost));
  looksLikeCopies(graph);
  replay(graph, stream, in, out);
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphExecMemcpyNodeSetParams1D(exec, up, d, others.data(), bytes, cudaMemcpyHostToDevice));
  in.assign(n, 1);
  others.assign(n, 500);
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(all(out.data(), n, 501));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
