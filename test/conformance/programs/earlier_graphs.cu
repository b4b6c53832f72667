// Graphs by the calls of earlier CUDA versions: nodes, edges, instantiation, update, capture.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

static CUfunction fill = nullptr, add = nullptr;
static CUdeviceptr out = 0;

/// A kernel that gets `out` and a value. The parameters live as long as this.
struct KernelNode {
  explicit KernelNode(CUfunction function, unsigned number) : value(number) {
    params.func = function;
    params.gridDimX = params.gridDimY = params.gridDimZ = 1;
    params.blockDimX = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments;
  }
  KernelNode(const KernelNode&) = delete;
  unsigned value;
  void* arguments[2] = {&out, &value};
  CUDA_KERNEL_NODE_PARAMS_v1 params{};
};

static CUgraphNode addKernel(CUgraph graph, const KernelNode& kernel) {
  CUgraphNode node = nullptr;
  const CUgraphNode* none = nullptr;
  EXPECT_OK(byName("cuGraphAddKernelNode", &node, graph, none, std::size_t{0}, &kernel.params));
  return node;
}

static void runOnce(CUgraphExec exec, unsigned expected) {
  EXPECT_OK(cuGraphLaunch(exec, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
  EXPECT(valueAt(out) == expected);
}

static void edges(CUgraph graph, CUgraphNode from, CUgraphNode to) {
  EXPECT_OK(byName("cuGraphAddDependencies", graph, &from, &to, std::size_t{1}));
  CUgraphNode froms[2] = {}, tos[2] = {}, found[2] = {};
  std::size_t count = 2;
  EXPECT_OK(byName("cuGraphGetEdges", graph, &froms[0], &tos[0], &count));
  EXPECT(count == 1 && froms[0] == from && tos[0] == to);
  count = 2;
  EXPECT_OK(byName("cuGraphNodeGetDependencies", to, &found[0], &count));
  EXPECT(count == 1 && found[0] == from);
  count = 2;
  EXPECT_OK(byName("cuGraphNodeGetDependentNodes", from, &found[0], &count));
  EXPECT(count == 1 && found[0] == to);
  EXPECT_OK(byName("cuGraphRemoveDependencies", graph, &from, &to, std::size_t{1}));
  count = 2;
  EXPECT_OK(byName("cuGraphGetEdges", graph, &froms[0], &tos[0], &count));
  EXPECT(count == 0);
  EXPECT_OK(byName("cuGraphAddDependencies", graph, &from, &to, std::size_t{1}));
}

static void parameters(CUgraphNode node) {
  CUDA_KERNEL_NODE_PARAMS_v1 found{};
  EXPECT_OK(byName("cuGraphKernelNodeGetParams", node, &found));
  EXPECT(found.func == add && found.blockDimX == 1);
  EXPECT(*static_cast<unsigned*>(found.kernelParams[1]) == 5);
  const KernelNode other(add, 6);
  EXPECT_OK(byName("cuGraphKernelNodeSetParams", node, &other.params));
}

static void buildAndRun() {
  CUgraph graph = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  const KernelNode first(fill, 100), second(add, 5);
  const CUgraphNode from = addKernel(graph, first), to = addKernel(graph, second);
  edges(graph, from, to);
  parameters(to);
  CUgraphExec exec = nullptr, other = nullptr, third = nullptr;
  CUgraphNode error = nullptr;
  char* const log = nullptr;
  EXPECT_OK(byName("cuGraphInstantiate", &exec, graph, &error, log, std::size_t{0}));
  EXPECT_OK(byName("cuGraphInstantiate_v2", &other, graph, &error, log, std::size_t{0}));
  CUDA_GRAPH_INSTANTIATE_PARAMS params{};
  params.flags = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
  EXPECT_OK(cuGraphInstantiateWithParams(&third, graph, &params));
  EXPECT(params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS);
  cuuint64_t flags = 0;
  EXPECT_OK(cuGraphExecGetFlags(third, &flags));
  EXPECT(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  runOnce(exec, 106);
  runOnce(other, 106);
  const KernelNode changed(add, 7);
  EXPECT_OK(byName("cuGraphExecKernelNodeSetParams", exec, to, &changed.params));
  runOnce(exec, 107);
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_ERROR;
  EXPECT_OK(byName("cuGraphExecUpdate", exec, graph, &error, &result));
  EXPECT(result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  runOnce(exec, 106);
  for (CUgraphExec each : {exec, other, third}) EXPECT_OK(cuGraphExecDestroy(each));
  EXPECT_OK(cuGraphDestroy(graph));
}

/// The stream's capture waits for `node` instead of the last work.
static void captureInfo(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id = 0, again = 0, newest = 0;
  EXPECT_OK(byName("cuStreamGetCaptureInfo", stream, &status, &id));
  EXPECT(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id != 0);
  CUgraph graph = nullptr;
  const CUgraphNode* waited = nullptr;
  std::size_t count = 0;
  EXPECT_OK(byName("cuStreamGetCaptureInfo_v2", stream, &status, &again, &graph, &waited, &count));
  EXPECT(again == id && graph != nullptr && count == 1);
  CUgraphNode last = waited[0];
  const CUgraphEdgeData* edges = nullptr;
  EXPECT_OK(byName("cuStreamGetCaptureInfo_v3", stream, &status, &newest, &graph, &waited, &edges, &count));
  EXPECT(newest == id && count == 1 && waited[0] == last);
  CUgraphNode* const none = nullptr;
  EXPECT_OK(byName("cuStreamUpdateCaptureDependencies", stream, none, std::size_t{0},
                   unsigned{CU_STREAM_SET_CAPTURE_DEPENDENCIES}));
  EXPECT_OK(byName("cuStreamGetCaptureInfo_v2", stream, &status, &again, &graph, &waited, &count));
  EXPECT(count == 0);
  const CUgraphEdgeData* const noData = nullptr;
  EXPECT_OK(byName("cuStreamUpdateCaptureDependencies_v2", stream, &last, noData, std::size_t{1},
                   unsigned{CU_STREAM_ADD_CAPTURE_DEPENDENCIES}));
  EXPECT_OK(byName("cuStreamGetCaptureInfo_v2", stream, &status, &again, &graph, &waited, &count));
  EXPECT(count == 1 && waited[0] == last);
}

static void capture() {
  CUstream stream = nullptr;
  EXPECT_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  EXPECT_OK(byName("cuStreamBeginCapture", stream));
  EXPECT_OK(cuMemsetD32Async(out, 41, 1, stream));
  captureInfo(stream);
  CUgraph graph = nullptr;
  EXPECT_OK(cuStreamEndCapture(stream, &graph));
  CUgraphNode root = nullptr;
  std::size_t roots = 1;
  EXPECT_OK(cuGraphGetRootNodes(graph, &root, &roots));
  EXPECT(roots == 1);
  const KernelNode more(add, 1);
  EXPECT_OK(cuStreamBeginCaptureToGraph(stream, graph, &root, nullptr, 1, CU_STREAM_CAPTURE_MODE_RELAXED));
  void* arguments[] = {more.arguments[0], more.arguments[1]};
  EXPECT_OK(cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  CUgraph same = nullptr;
  EXPECT_OK(cuStreamEndCapture(stream, &same));
  EXPECT(same == graph);
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuGraphInstantiate(&exec, graph, 0));
  runOnce(exec, 42);
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
  EXPECT_OK(cuStreamDestroy(stream));
}

int main() {
  startDriver();
  CUmodule module = nullptr;
  EXPECT_OK(cuModuleLoadData(&module, kTwoKernels));
  EXPECT_OK(cuModuleGetFunction(&fill, module, "fill"));
  EXPECT_OK(cuModuleGetFunction(&add, module, "add"));
  EXPECT_OK(cuMemAlloc(&out, 64));
  buildAndRun();
  capture();
  return verdict();
}
