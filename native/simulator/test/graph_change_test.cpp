// Changes of graphs and of executable graphs, user objects, and how graphs are printed.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "native/simulator/test/graph_test.h"

namespace {

TEST_CASE("one call adds nodes of any type") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate();
  CUgraphNodeParams parameters{};
  parameters.type = CU_GRAPH_NODE_TYPE_MEMSET;
  parameters.memset.dst = p, parameters.memset.value = 7, parameters.memset.elementSize = 4;
  parameters.memset.width = parameters.memset.height = 1;
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddNode_v2)(&node, graph, nullptr, nullptr, 0, &parameters));
  const CUgraphExec exec = instantiate(graph);
  parameters.memset.value = 8;
  OK(DRIVER(cuGraphExecNodeSetParams)(exec, node, &parameters));
  launch(exec);
  CHECK(valueAt(p) == 8);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a kernel of a library is a node, and arguments may come as one buffer") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
  OK(DRIVER(cuLibraryLoadData)(&library, kKernels, nullptr, nullptr, 0, nullptr, nullptr, 0));
  OK(DRIVER(cuLibraryGetKernel)(&kernel, library, "store"));
  struct {
    CUdeviceptr at;
    std::uint32_t value;
  } packed{p, 15};
  std::size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  Store shape{nullptr, p, 0};
  CUDA_KERNEL_NODE_PARAMS parameters = shape.parameters();
  parameters.kern = kernel;
  parameters.kernelParams = nullptr;
  parameters.extra = extra;
  const CUgraph graph = create();
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddKernelNode_v2)(&node, graph, nullptr, 0, &parameters));
  CUDA_KERNEL_NODE_PARAMS got{};
  OK(DRIVER(cuGraphKernelNodeGetParams_v2)(node, &got));
  CHECK(got.kern == kernel);
  CHECK(got.kernelParams == nullptr);
  CHECK(got.extra != nullptr);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  CHECK(valueAt(p) == 15);
  destroy(graph, exec);
  OK(DRIVER(cuLibraryUnload)(library));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("parameters are read and set, in a graph and in an executable graph") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate();
  const CUgraphNode node = addStore(graph, p, 3);
  CUDA_KERNEL_NODE_PARAMS got{};
  OK(DRIVER(cuGraphKernelNodeGetParams_v2)(node, &got));
  CHECK(got.func == storeKernel());
  CHECK(got.gridDimX == 1);
  CHECK(got.extra == nullptr);
  CHECK(*static_cast<CUdeviceptr*>(got.kernelParams[0]) == p);
  CHECK(*static_cast<std::uint32_t*>(got.kernelParams[1]) == 3);
  Store changed{storeKernel(), p, 4};
  const CUDA_KERNEL_NODE_PARAMS parameters = changed.parameters();
  OK(DRIVER(cuGraphKernelNodeSetParams_v2)(node, &parameters));
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  CHECK(valueAt(p) == 4);
  Store other{storeKernel(), p, 9};
  const CUDA_KERNEL_NODE_PARAMS later = other.parameters();
  OK(DRIVER(cuGraphExecKernelNodeSetParams_v2)(exec, node, &later));
  launch(exec);
  CHECK(valueAt(p) == 9);
  OK(DRIVER(cuMemsetD8_v2)(p, 0, 4));
  unsigned enabled = 7;
  OK(DRIVER(cuGraphNodeSetEnabled)(exec, node, 0));
  OK(DRIVER(cuGraphNodeGetEnabled)(exec, node, &enabled));
  CHECK(enabled == 0);
  launch(exec);
  CHECK(valueAt(p) == 0);
  OK(DRIVER(cuGraphNodeSetEnabled)(exec, node, 1));
  launch(exec);
  CHECK(valueAt(p) == 9);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("an executable graph is updated from a graph of the same shape only") {
  usePrimaryContext();
  const CUgraph graph = create(), same = create(), longer = create(), other = create();
  const CUdeviceptr p = allocate();
  addStore(graph, p + 4, 1, {addStore(graph, p, 1)});
  addStore(same, p + 4, 20, {addStore(same, p, 10)});
  addEmpty(longer, {addStore(longer, p + 4, 1, {addStore(longer, p, 1)})});
  const CUgraphNode empty = addEmpty(other, {addStore(other, p, 1)});
  const CUgraphExec exec = instantiate(graph);
  CUgraphExecUpdateResultInfo info{};
  OK(DRIVER(cuGraphExecUpdate_v2)(exec, same, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_SUCCESS);
  launch(exec);
  CHECK(valueAt(p) == 10);
  CHECK(valueAt(p + 4) == 20);
  EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, DRIVER(cuGraphExecUpdate_v2)(exec, longer, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
  CHECK(info.errorNode == nullptr);
  EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, DRIVER(cuGraphExecUpdate_v2)(exec, other, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  CHECK(info.errorNode == empty);
  for (const CUgraph each : {same, longer, other}) destroy(each);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

void count(void* counter) {
  auto& number = *static_cast<std::atomic<int>*>(counter);
  ++number;
  number.notify_all();
}

TEST_CASE("a user object ends with its last reference") {
  usePrimaryContext();
  std::atomic<int> ended = 0;
  CUuserObject object = nullptr;
  OK(DRIVER(cuUserObjectCreate)(&object, &ended, count, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  const CUgraph graph = create();
  addEmpty(graph);
  OK(DRIVER(cuGraphRetainUserObject)(graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE));
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  OK(DRIVER(cuGraphDestroy)(graph));
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(ended == 0);
  OK(DRIVER(cuGraphExecDestroy)(exec));
  ended.wait(0);
  CHECK(ended == 1);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuUserObjectCreate)(&object, &ended, count, 1, 0));
}

TEST_CASE("a graph is printed for Graphviz") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate();
  addEmpty(graph, {addStore(graph, p, 1)});
  char path[] = "/tmp/simulator_graph_test_XXXXXX";
  CHECK(mkstemp(path) >= 0);
  OK(DRIVER(cuGraphDebugDotPrint)(graph, path, CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  CHECK(text.str().starts_with("digraph"));
  CHECK(text.str().find("store") != std::string::npos);
  CHECK(text.str().find("->") != std::string::npos);
  std::remove(path);
  EXPECT(CUDA_ERROR_OPERATING_SYSTEM, DRIVER(cuGraphDebugDotPrint)(graph, "/proc/none/x", 0));
  destroy(graph);
  OK(DRIVER(cuMemFree_v2)(p));
}

}  // namespace
