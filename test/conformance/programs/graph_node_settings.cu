// Settings of graph nodes, before and after instantiation: memset, host function, events, child graph, attributes.
// conformance: flags=-lcuda judges=itself
#include <unistd.h>

#include <cstring>

#include "by_name.h"

static CUdeviceptr out = 0;
static int called = 0;

static void CUDA_CB note(void* number) { called = *static_cast<int*>(number); }

static CUDA_MEMSET_NODE_PARAMS memsetOf(unsigned value) {
  CUDA_MEMSET_NODE_PARAMS params{};
  params.dst = out;
  params.value = value;
  params.elementSize = 4;
  params.width = params.height = 1;
  return params;
}

static CUgraphExec instantiated(CUgraph graph) {
  CUgraphExec exec = nullptr;
  EXPECT_OK(cuGraphInstantiate(&exec, graph, 0));
  return exec;
}

static void runOnce(CUgraphExec exec) {
  EXPECT_OK(cuGraphLaunch(exec, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));
}

static void finish(CUgraph graph, CUgraphExec exec) {
  EXPECT_OK(cuGraphExecDestroy(exec));
  EXPECT_OK(cuGraphDestroy(graph));
}

static CUgraph memsetGraph(CUcontext context, unsigned value, CUgraphNode* node) {
  CUgraph graph = nullptr;
  const CUDA_MEMSET_NODE_PARAMS params = memsetOf(value);
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddMemsetNode(node, graph, nullptr, 0, &params, context));
  return graph;
}

static void memsets(CUcontext context) {
  CUgraphNode node = nullptr;
  CUgraph graph = memsetGraph(context, 1, &node);
  const CUDA_MEMSET_NODE_PARAMS params = memsetOf(2);
  EXPECT_OK(cuGraphMemsetNodeSetParams(node, &params));
  CUgraphExec exec = instantiated(graph);
  runOnce(exec);
  EXPECT(valueAt(out) == 2);
  CUgraphNodeParams any{};
  any.type = CU_GRAPH_NODE_TYPE_MEMSET;
  any.memset.dst = out;
  any.memset.value = 3;
  any.memset.elementSize = 4;
  any.memset.width = any.memset.height = 1;
  any.memset.ctx = context;
  EXPECT_OK(cuGraphExecNodeSetParams(exec, node, &any));
  runOnce(exec);
  EXPECT(valueAt(out) == 3);
  EXPECT_OK(cuGraphNodeSetParams(node, &any));
  CUDA_MEMSET_NODE_PARAMS found{};
  EXPECT_OK(cuGraphMemsetNodeGetParams(node, &found));
  EXPECT(found.value == 3);
  finish(graph, exec);
}

static void anyNodes(CUcontext context) {
  CUgraph graph = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = out;
  params.memset.value = 8;
  params.memset.elementSize = 4;
  params.memset.width = params.memset.height = 1;
  params.memset.ctx = context;
  CUgraphNode first = nullptr, second = nullptr;
  const CUgraphNode* const none = nullptr;
  EXPECT_OK(byName("cuGraphAddNode", &first, graph, none, std::size_t{0}, &params));
  params.memset.value = 9;
  EXPECT_OK(byName("cuGraphAddNode_v2", &second, graph, &first, static_cast<CUgraphEdgeData*>(nullptr),
                   std::size_t{1}, &params));
  CUgraphExec exec = instantiated(graph);
  runOnce(exec);
  EXPECT(valueAt(out) == 9);
  finish(graph, exec);
}

static void hostFunctions() {
  static int numbers[] = {1, 2, 3};
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  CUDA_HOST_NODE_PARAMS params{note, &numbers[0]};
  EXPECT_OK(cuGraphAddHostNode(&node, graph, nullptr, 0, &params));
  params.userData = &numbers[1];
  EXPECT_OK(cuGraphHostNodeSetParams(node, &params));
  CUgraphExec exec = instantiated(graph);
  runOnce(exec);
  EXPECT(called == 2);
  params.userData = &numbers[2];
  EXPECT_OK(cuGraphExecHostNodeSetParams(exec, node, &params));
  runOnce(exec);
  EXPECT(called == 3);
  finish(graph, exec);
}

static void events() {
  CUevent one = nullptr, other = nullptr, found = nullptr;
  EXPECT_OK(cuEventCreate(&one, CU_EVENT_DISABLE_TIMING));
  EXPECT_OK(cuEventCreate(&other, CU_EVENT_DISABLE_TIMING));
  CUgraph graph = nullptr;
  CUgraphNode record = nullptr, wait = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddEventRecordNode(&record, graph, nullptr, 0, one));
  EXPECT_OK(cuGraphAddEventWaitNode(&wait, graph, &record, 1, one));
  EXPECT_OK(cuGraphEventWaitNodeGetEvent(wait, &found));
  EXPECT(found == one);
  EXPECT_OK(cuGraphEventRecordNodeSetEvent(record, other));
  EXPECT_OK(cuGraphEventRecordNodeGetEvent(record, &found));
  EXPECT(found == other);
  EXPECT_OK(cuGraphEventWaitNodeSetEvent(wait, other));
  CUgraphExec exec = instantiated(graph);
  EXPECT_OK(cuGraphExecEventRecordNodeSetEvent(exec, record, one));
  EXPECT_OK(cuGraphExecEventWaitNodeSetEvent(exec, wait, one));
  runOnce(exec);
  EXPECT(cuEventQuery(one) == CUDA_SUCCESS);
  finish(graph, exec);
  EXPECT_OK(cuEventDestroy(one));
  EXPECT_OK(cuEventDestroy(other));
}

static void children(CUcontext context) {
  CUgraphNode inner = nullptr, node = nullptr;
  CUgraph child = memsetGraph(context, 20, &inner), other = memsetGraph(context, 21, &inner);
  CUgraph graph = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddChildGraphNode(&node, graph, nullptr, 0, child));
  CUgraphExec exec = instantiated(graph);
  EXPECT_OK(cuGraphExecChildGraphNodeSetParams(exec, node, other));
  runOnce(exec);
  EXPECT(valueAt(out) == 21);
  finish(graph, exec);
  EXPECT_OK(cuGraphDestroy(child));
  EXPECT_OK(cuGraphDestroy(other));
}

static void attributes(CUfunction function) {
  unsigned value = 1;
  void* arguments[] = {&out, &value};
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function;
  params.gridDimX = params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = arguments;
  CUgraph graph = nullptr;
  CUgraphNode first = nullptr, second = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuGraphAddKernelNode(&first, graph, nullptr, 0, &params));
  EXPECT_OK(cuGraphAddKernelNode(&second, graph, &first, 1, &params));
  CUkernelNodeAttrValue cooperative{}, found{};
  cooperative.cooperative = 1;
  EXPECT_OK(cuGraphKernelNodeSetAttribute(first, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &cooperative));
  EXPECT_OK(cuGraphKernelNodeCopyAttributes(second, first));
  EXPECT_OK(cuGraphKernelNodeGetAttribute(second, CU_KERNEL_NODE_ATTRIBUTE_COOPERATIVE, &found));
  EXPECT(found.cooperative == 1);
  EXPECT_OK(cuGraphDebugDotPrint(graph, "graph.dot", 0));
  std::FILE* file = std::fopen("graph.dot", "r");
  char text[8] = {};
  EXPECT(file != nullptr && std::fread(text, 1, 7, file) == 7 && std::strcmp(text, "digraph") == 0);
  if (file != nullptr) std::fclose(file);
  unlink("graph.dot");
  EXPECT_OK(cuGraphDestroy(graph));
}

/// The graph has one reference, gives it up, and the destructor runs once nobody else has one.
static void userObjects() {
  static int number = 50;
  called = 0;
  CUgraph graph = nullptr;
  CUuserObject object = nullptr;
  EXPECT_OK(cuGraphCreate(&graph, 0));
  EXPECT_OK(cuUserObjectCreate(&object, &number, note, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  EXPECT_OK(cuGraphRetainUserObject(graph, object, 1, 0));
  EXPECT_OK(cuGraphReleaseUserObject(graph, object, 1));
  EXPECT_OK(cuUserObjectRelease(object, 1));
  for (int i = 0; i < 5000 && called == 0; ++i) usleep(1000);
  EXPECT(called == 50);
  EXPECT_OK(cuGraphDestroy(graph));
}

static void graphMemory() {
  cuuint64_t zero = 0, used = 1;
  EXPECT_OK(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero));
  EXPECT_OK(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &used));
  EXPECT(used == 0);
}

int main() {
  CUcontext context = startDriver();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_OK(cuModuleLoadData(&module, kTwoKernels));
  EXPECT_OK(cuModuleGetFunction(&function, module, "add"));
  EXPECT_OK(cuMemAlloc(&out, 64));
  memsets(context);
  anyNodes(context);
  hostFunctions();
  events();
  children(context);
  attributes(function);
  userObjects();
  graphMemory();
  return verdict();
}
