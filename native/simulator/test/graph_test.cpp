// Graphs that are built node by node: what they hold, and how they run.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "native/simulator/test/graph_test.h"

namespace {

TEST_CASE("a graph and its nodes have handles") {
  usePrimaryContext();
  CUgraph graph = create();
  const CUgraphNode node = addEmpty(graph);
  CUgraphNodeType type{};
  OK(DRIVER(cuGraphNodeGetType)(node, &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_EMPTY);
  destroy(graph);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphCreate)(&graph, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphCreate)(nullptr, 0));
}

TEST_CASE("nodes and edges are listed and changed") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUgraphNode a = addEmpty(graph), b = addEmpty(graph, {a}), c = addEmpty(graph, {a, b});
  CUgraphNode nodes[4] = {a, a, a, a}, to[4] = {};
  size_t count = 0;
  OK(DRIVER(cuGraphGetNodes)(graph, nullptr, &count));
  CHECK(count == 3);
  count = 4;
  OK(DRIVER(cuGraphGetNodes)(graph, nodes, &count));
  CHECK(count == 3);
  CHECK(nodes[3] == nullptr);
  count = 4;
  OK(DRIVER(cuGraphGetRootNodes)(graph, nodes, &count));
  CHECK(count == 1);
  CHECK(nodes[0] == a);
  count = 4;
  OK(DRIVER(cuGraphGetEdges_v2)(graph, nodes, to, nullptr, &count));
  CHECK(count == 3);
  count = 4;
  OK(DRIVER(cuGraphNodeGetDependencies_v2)(c, nodes, nullptr, &count));
  CHECK(count == 2);
  CHECK(nodes[0] == a);
  CHECK(nodes[1] == b);
  count = 4;
  OK(DRIVER(cuGraphNodeGetDependentNodes_v2)(a, nodes, nullptr, &count));
  CHECK(count == 2);
  OK(DRIVER(cuGraphRemoveDependencies_v2)(graph, &a, &c, nullptr, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphRemoveDependencies_v2)(graph, &a, &c, nullptr, 1));
  OK(DRIVER(cuGraphAddDependencies_v2)(graph, &a, &c, nullptr, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphAddDependencies_v2)(graph, &a, &c, nullptr, 1));
  OK(DRIVER(cuGraphDestroyNode)(b));
  OK(DRIVER(cuGraphNodeGetDependencies_v2)(c, nullptr, nullptr, &count));
  CHECK(count == 1);
  destroy(graph);
}

TEST_CASE("an edge has data, and a question without room for them is lossy") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate();
  const CUgraphNode a = addStore(graph, p, 1), b = addStore(graph, p, 2);
  const CUgraphEdgeData programmatic{
      CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  OK(DRIVER(cuGraphAddDependencies_v2)(graph, &a, &b, &programmatic, 1));
  CUgraphNode from = nullptr, to = nullptr;
  CUgraphEdgeData data{};
  size_t count = 1;
  OK(DRIVER(cuGraphGetEdges_v2)(graph, &from, &to, &data, &count));
  CHECK(from == a);
  CHECK(to == b);
  CHECK(data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  EXPECT(CUDA_ERROR_LOSSY_QUERY, DRIVER(cuGraphGetEdges_v2)(graph, &from, &to, nullptr, &count));
  destroy(graph);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("nodes run in the order of their dependencies") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate(), q = allocate();
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = p, memset.value = 5, memset.elementSize = 4, memset.width = 8, memset.height = 1;
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  CUgraphNode set = nullptr, copy = nullptr;
  OK(DRIVER(cuGraphAddMemsetNode)(&set, graph, nullptr, 0, &memset, context));
  const CUgraphNode kernel = addStore(graph, p, 77, {set});
  CUDA_MEMCPY3D copying{};
  copying.srcMemoryType = copying.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copying.srcDevice = p, copying.dstDevice = q;
  copying.WidthInBytes = 32, copying.Height = copying.Depth = 1;
  OK(DRIVER(cuGraphAddMemcpyNode)(&copy, graph, &kernel, 1, &copying, context));
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) launch(exec);
  CHECK(valueAt(q) == 77);
  CHECK(valueAt(q + 4) == 5);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuMemFree_v2)(q));
}

TEST_CASE("a copy node copies layers of rows") {
  usePrimaryContext();
  const CUgraph graph = create();
  std::vector<std::uint8_t> source(4 * 4 * 4), target(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i);
  const CUdeviceptr p = allocate(64);
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  CUDA_MEMCPY3D in{};
  in.srcMemoryType = CU_MEMORYTYPE_HOST, in.srcHost = source.data();
  in.srcPitch = in.srcHeight = 4;
  in.srcXInBytes = in.srcY = in.srcZ = 1;
  in.dstMemoryType = CU_MEMORYTYPE_DEVICE, in.dstDevice = p;
  in.dstPitch = in.dstHeight = 2;
  in.WidthInBytes = in.Height = in.Depth = 2;
  CUDA_MEMCPY3D out{};
  out.srcMemoryType = CU_MEMORYTYPE_DEVICE, out.srcDevice = p;
  out.dstMemoryType = CU_MEMORYTYPE_HOST, out.dstHost = target.data();
  out.WidthInBytes = 8, out.Height = out.Depth = 1;
  CUgraphNode first = nullptr, second = nullptr;
  OK(DRIVER(cuGraphAddMemcpyNode)(&first, graph, nullptr, 0, &in, context));
  OK(DRIVER(cuGraphAddMemcpyNode)(&second, graph, &first, 1, &out, context));
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  OK(DRIVER(cuCtxSynchronize)());
  const std::vector<std::uint8_t> expected{21, 22, 25, 26, 37, 38, 41, 42};
  CHECK(std::equal(expected.begin(), expected.end(), target.begin()));
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

struct Meeting {
  std::atomic<int> arrived{0};
  static void arrive(void* meeting) {
    auto& arrived = static_cast<Meeting*>(meeting)->arrived;
    ++arrived;
    arrived.notify_all();
  }
};

void append(void* text) { static_cast<std::string*>(text)->push_back('x'); }

TEST_CASE("host nodes run, and a node waits for all branches before it") {
  usePrimaryContext();
  const CUgraph graph = create();
  std::string text;
  Meeting meeting;
  const CUgraphNode first = addHost(graph, append, &text);
  const CUgraphNode left = addHost(graph, Meeting::arrive, &meeting, {first});
  const CUgraphNode right = addHost(graph, Meeting::arrive, &meeting, {first});
  const CUgraphNode last = addHost(graph, append, &text, {left, right});
  CUDA_HOST_NODE_PARAMS parameters{};
  OK(DRIVER(cuGraphHostNodeGetParams)(last, &parameters));
  CHECK((parameters.fn == append));
  CHECK(parameters.userData == &text);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(text == "xx");
  CHECK(meeting.arrived == 2);
  destroy(graph, exec);
}

TEST_CASE("a clone knows the originals of its nodes") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUdeviceptr p = allocate();
  const CUgraphNode node = addStore(graph, p, 6);
  CUgraph clone = nullptr;
  CUgraphNode found = nullptr;
  OK(DRIVER(cuGraphClone)(&clone, graph));
  OK(DRIVER(cuGraphNodeFindInClone)(&found, node, clone));
  CHECK(found != nullptr);
  CHECK(found != node);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphNodeFindInClone)(&found, node, graph));
  destroy(graph);
  const CUgraphExec exec = instantiate(clone);
  launch(exec);
  CHECK(valueAt(p) == 6);
  destroy(clone, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a child graph is a copy") {
  usePrimaryContext();
  const CUgraph child = create(), graph = create();
  const CUdeviceptr p = allocate();
  const CUgraphNode inner = addStore(child, p, 1);
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddChildGraphNode)(&node, graph, nullptr, 0, child));
  const CUgraphNode after = addStore(graph, p + 4, 2, {node});
  CHECK(after != nullptr);
  OK(DRIVER(cuGraphDestroyNode)(inner));
  CUgraph embedded = nullptr;
  OK(DRIVER(cuGraphChildGraphNodeGetGraph)(node, &embedded));
  size_t count = 0;
  OK(DRIVER(cuGraphGetNodes)(embedded, nullptr, &count));
  CHECK(count == 1);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  CHECK(valueAt(p) == 1);
  CHECK(valueAt(p + 4) == 2);
  destroy(child);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("events order graphs and streams") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUevent before = nullptr, after = nullptr;
  OK(DRIVER(cuEventCreate)(&before, 0));
  OK(DRIVER(cuEventCreate)(&after, 0));
  CUstream first = nullptr, second = nullptr;
  OK(DRIVER(cuStreamCreate)(&first, CU_STREAM_NON_BLOCKING));
  OK(DRIVER(cuStreamCreate)(&second, CU_STREAM_NON_BLOCKING));
  CUgraphNode wait = nullptr, record = nullptr;
  OK(DRIVER(cuGraphAddEventWaitNode)(&wait, graph, nullptr, 0, before));
  OK(DRIVER(cuGraphAddEventRecordNode)(&record, graph, &wait, 1, after));
  CUevent event = nullptr;
  OK(DRIVER(cuGraphEventRecordNodeGetEvent)(record, &event));
  CHECK(event == after);
  const CUgraphExec exec = instantiate(graph);
  std::atomic<bool> open = false;
  OK(DRIVER(cuLaunchHostFunc)(
      first, [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(false); }, &open));
  OK(DRIVER(cuEventRecord)(before, first));
  launch(exec, second);
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuEventQuery)(after));
  open = true;
  open.notify_all();
  OK(DRIVER(cuEventSynchronize)(after));
  OK(DRIVER(cuStreamSynchronize)(second));
  OK(DRIVER(cuStreamDestroy_v2)(first));
  OK(DRIVER(cuStreamDestroy_v2)(second));
  destroy(graph, exec);
  OK(DRIVER(cuEventDestroy_v2)(before));
  OK(DRIVER(cuEventDestroy_v2)(after));
}

TEST_CASE("a cycle is refused") {
  usePrimaryContext();
  const CUgraph graph = create();
  const CUgraphNode a = addEmpty(graph), b = addEmpty(graph, {a});
  if (DRIVER(cuGraphAddDependencies_v2)(graph, &b, &a, nullptr, 1) == CUDA_SUCCESS) {
    CUgraphExec exec = nullptr;
    CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
    EXPECT(CUDA_ERROR_INVALID_VALUE,
           DRIVER(cuGraphInstantiateWithParams)(&exec, graph, &parameters));
    CHECK(parameters.result_out == CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  }
  destroy(graph);
}

}  // namespace
