// Which nodes the calls of a capturing stream become.
#include <cstdint>
#include <cstring>
#include <string>

#include "native/simulator/test/capture_test.h"

namespace {

TEST_CASE("the calls of a stream become nodes and run only when the graph is launched") {
  usePrimaryContext();
  const CUdeviceptr p = allocate(), q = allocate();
  const CUstream stream = createStream();
  std::uint32_t result[2] = {};
  std::string text;
  begin(stream);
  CHECK(statusOf(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  OK(DRIVER(cuMemsetD32Async)(p, 5, 2, stream));
  launchStore(stream, p, 9);
  OK(DRIVER(cuMemcpyDtoDAsync_v2)(q, p, 8, stream));
  OK(DRIVER(cuMemcpyDtoHAsync_v2)(result, q, 8, stream));
  OK(DRIVER(cuLaunchHostFunc)(
      stream, [](void* word) { static_cast<std::string*>(word)->push_back('h'); }, &text));
  const CUgraph graph = end(stream);
  CHECK(statusOf(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(text.empty());
  CHECK(valueAt(p) == 0);
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 5);
  CHECK(typeOf(nodes[0]) == CU_GRAPH_NODE_TYPE_MEMSET);
  CHECK(typeOf(nodes[1]) == CU_GRAPH_NODE_TYPE_KERNEL);
  CHECK(typeOf(nodes[2]) == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(typeOf(nodes[3]) == CU_GRAPH_NODE_TYPE_MEMCPY);
  CHECK(typeOf(nodes[4]) == CU_GRAPH_NODE_TYPE_HOST);
  CHECK(dependencyCount(nodes[0]) == 0);
  for (std::size_t i = 1; i < nodes.size(); ++i) CHECK(dependencyCount(nodes[i]) == 1);
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 2; ++i) {
    std::memset(result, 0, sizeof result);
    launch(exec, stream);
    OK(DRIVER(cuStreamSynchronize)(stream));
    CHECK(result[0] == 9);
    CHECK(result[1] == 5);
  }
  CHECK(text == "hh");
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuMemFree_v2)(q));
}

TEST_CASE("a kernel that need not wait for the one before depends on an earlier point of it") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream stream = createStream();
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  Store kernel{storeKernel(), p + 4, 2};
  begin(stream);
  launchStore(stream, p, 1);
  OK(DRIVER(cuLaunchKernelEx)(&config, storeKernel(), kernel.arguments, nullptr));
  const CUgraph graph = end(stream);
  CUgraphNode from = nullptr, to = nullptr;
  CUgraphEdgeData data{};
  size_t count = 1;
  OK(DRIVER(cuGraphGetEdges_v2)(graph, &from, &to, &data, &count));
  CHECK(count == 1);
  CHECK(data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  CHECK(data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  CHECK(valueAt(p + 4) == 2);
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("memory in stream order becomes memory nodes") {
  usePrimaryContext();
  const CUdeviceptr result = allocate();
  const CUstream stream = createStream();
  CUdeviceptr p = 0;
  begin(stream);
  OK(DRIVER(cuMemAllocAsync)(&p, 4096, stream));
  launchStore(stream, p, 31);
  OK(DRIVER(cuMemcpyDtoDAsync_v2)(result, p, 4, stream));
  OK(DRIVER(cuMemFreeAsync)(p, stream));
  const CUgraph graph = end(stream);
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 4);
  CHECK(typeOf(nodes[0]) == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  CHECK(typeOf(nodes[3]) == CU_GRAPH_NODE_TYPE_MEM_FREE);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  launch(exec, stream);
  CHECK(valueAt(result) == 31);
  destroy(graph, exec);
  OK(DRIVER(cuDeviceGraphMemTrim)(0));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(result));
}

TEST_CASE("a word that is written in stream order becomes a node") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream stream = createStream();
  begin(stream);
  OK(DRIVER(cuStreamWriteValue32_v2)(stream, p, 19, 0));
  const CUgraph graph = end(stream);
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 1);
  CHECK(typeOf(nodes[0]) == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  CHECK(valueAt(p) == 19);
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("an external event becomes a node") {
  usePrimaryContext();
  const CUstream stream = createStream();
  const CUevent event = createEvent();
  begin(stream);
  OK(DRIVER(cuStreamWaitEvent)(stream, event, CU_EVENT_WAIT_EXTERNAL));
  OK(DRIVER(cuEventRecordWithFlags)(event, stream, CU_EVENT_RECORD_EXTERNAL));
  const CUgraph graph = end(stream);
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 2);
  CHECK(typeOf(nodes[0]) == CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  CHECK(typeOf(nodes[1]) == CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  OK(DRIVER(cuEventSynchronize)(event));
  destroy(graph, exec);
  OK(DRIVER(cuEventDestroy_v2)(event));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

}  // namespace
