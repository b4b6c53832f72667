// A graph built node by node from every simple kind: empty, kernel, memset, copy, host function, event record and wait.
// conformance: judges=itself
#include "graphs.h"

constexpr int n = 500;

static void note(void* counter) { ++*static_cast<int*>(counter); }

int main() {
  int *d = nullptr, *e = nullptr, *pinned = nullptr, calls = 0;
  EXPECT_OK(cudaMalloc(&d, n * sizeof(int)));
  EXPECT_OK(cudaMalloc(&e, n * sizeof(int)));
  EXPECT_OK(cudaMallocHost(&pinned, n * sizeof(int)));
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaEventCreate(&event));
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaGraphCreate(&graph, 0));

  cudaGraphNode_t root = nullptr, fill = nullptr, add = nullptr, copy = nullptr, back = nullptr, host = nullptr, record = nullptr, wait = nullptr;
  EXPECT_OK(cudaGraphAddEmptyNode(&root, graph, nullptr, 0));
  cudaMemsetParams memset{};
  memset.dst = d, memset.value = 3, memset.elementSize = 4, memset.width = n, memset.height = 1;
  EXPECT_OK(cudaGraphAddMemsetNode(&fill, graph, &root, 1, &memset));
  int count = n, by = 4;
  void* arguments[] = {&d, &count, &by};
  cudaKernelNodeParams kernel{};
  kernel.func = reinterpret_cast<void*>(addTo);
  kernel.gridDim = dim3((n + 63) / 64), kernel.blockDim = dim3(64), kernel.kernelParams = arguments;
  EXPECT_OK(cudaGraphAddKernelNode(&add, graph, &fill, 1, &kernel));
  by = 100;  // the node has a copy
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &add, 1, e, d, n * sizeof(int), cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&back, graph, &copy, 1, pinned, e, n * sizeof(int), cudaMemcpyDeviceToHost));
  cudaHostNodeParams function{};
  function.fn = note, function.userData = &calls;
  EXPECT_OK(cudaGraphAddHostNode(&host, graph, &back, 1, &function));
  EXPECT_OK(cudaGraphAddEventRecordNode(&record, graph, &host, 1, event));
  EXPECT_OK(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, event));

  const struct {
    cudaGraphNode_t node;
    cudaGraphNodeType type;
  } kinds[] = {{root, cudaGraphNodeTypeEmpty}, {fill, cudaGraphNodeTypeMemset}, {add, cudaGraphNodeTypeKernel}, {copy, cudaGraphNodeTypeMemcpy},
               {back, cudaGraphNodeTypeMemcpy}, {host, cudaGraphNodeTypeHost}, {record, cudaGraphNodeTypeEventRecord}, {wait, cudaGraphNodeTypeWaitEvent}};
  for (const auto& [node, type] : kinds) {
    cudaGraphNodeType is = cudaGraphNodeTypeCount;
    EXPECT_OK(cudaGraphNodeGetType(node, &is));
    EXPECT(is == type);
  }
  cudaEvent_t recorded = nullptr;
  EXPECT_OK(cudaGraphEventRecordNodeGetEvent(record, &recorded));
  EXPECT(recorded == event);
  cudaMemsetParams fills{};
  EXPECT_OK(cudaGraphMemsetNodeGetParams(fill, &fills));
  EXPECT(fills.dst == d && fills.value == 3 && fills.elementSize == 4 && fills.width == n && fills.height == 1);
  cudaHostNodeParams calledFunction{};
  EXPECT_OK(cudaGraphHostNodeGetParams(host, &calledFunction));
  EXPECT(calledFunction.fn == note && calledFunction.userData == &calls);

  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphUpload(exec, stream));
  for (int launch = 1; launch <= 3; ++launch) {
    std::memset(pinned, 0, n * sizeof(int));
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(all(pinned, n, 7));
    EXPECT(calls == launch);
    EXPECT(cudaEventQuery(event) == cudaSuccess);
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroyNode(wait));
  EXPECT_OK(cudaGraphDestroyNode(host));
  runOnce(graph, stream);
  EXPECT(calls == 3);
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
