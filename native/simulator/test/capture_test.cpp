// How streams and threads take part in a capture.
#include <cstdint>
#include <thread>
#include <vector>

#include "native/simulator/test/capture_test.h"

namespace {

TEST_CASE("streams fork and join through events") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream origin = createStream(), other = createStream();
  const CUevent fork = createEvent(), join = createEvent();
  begin(origin);
  launchStore(origin, p, 1);
  OK(DRIVER(cuEventRecord)(fork, origin));
  OK(DRIVER(cuStreamWaitEvent)(other, fork, 0));
  CHECK(statusOf(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  launchStore(other, p + 4, 2);
  launchStore(origin, p + 8, 3);
  OK(DRIVER(cuEventRecord)(join, other));
  OK(DRIVER(cuStreamWaitEvent)(origin, join, 0));
  launchStore(origin, p + 12, 4);
  CUgraph graph = end(origin);
  CHECK(statusOf(other) == CU_STREAM_CAPTURE_STATUS_NONE);
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 4);
  CHECK(dependencyCount(nodes[1]) == 1);
  CHECK(dependencyCount(nodes[2]) == 1);
  CHECK(dependencyCount(nodes[3]) == 2);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, other);
  for (unsigned i = 0; i < 4; ++i) CHECK(valueAt(p + 4 * i) == i + 1);
  destroy(graph, exec);
  OK(DRIVER(cuEventDestroy_v2)(fork));
  OK(DRIVER(cuEventDestroy_v2)(join));
  OK(DRIVER(cuStreamDestroy_v2)(origin));
  OK(DRIVER(cuStreamDestroy_v2)(other));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a stream that has joined a capture can be destroyed before its end") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream origin = createStream();
  const CUevent fork = createEvent(), join = createEvent();
  const auto forkAndDestroy = [&] {
    const CUstream other = createStream();
    begin(origin);
    launchStore(origin, p, 1);
    OK(DRIVER(cuEventRecord)(fork, origin));
    OK(DRIVER(cuStreamWaitEvent)(other, fork, 0));
    launchStore(other, p + 4, 2);
    OK(DRIVER(cuEventRecord)(join, other));
    OK(DRIVER(cuStreamDestroy_v2)(other));
    CHECK(statusOf(origin) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  };
  forkAndDestroy();
  CUgraph graph = nullptr;
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, DRIVER(cuStreamEndCapture)(origin, &graph));
  CHECK(graph == nullptr);
  forkAndDestroy();
  OK(DRIVER(cuStreamWaitEvent)(origin, join, 0));
  graph = end(origin);
  CHECK(nodesOf(graph).size() == 2);
  const CUgraphExec exec = instantiate(graph);
  launch(exec, origin);
  for (unsigned i = 0; i < 2; ++i) CHECK(valueAt(p + 4 * i) == i + 1);
  destroy(graph, exec);
  OK(DRIVER(cuEventDestroy_v2)(fork));
  OK(DRIVER(cuEventDestroy_v2)(join));
  OK(DRIVER(cuStreamDestroy_v2)(origin));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a capture tells its graph and dependencies, which a program may change") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream stream = createStream();
  CUstreamCaptureStatus status{};
  cuuint64_t id = 0, again = 0;
  CUgraph graph = nullptr;
  const CUgraphNode* dependencies = nullptr;
  const CUgraphEdgeData* data = nullptr;
  size_t count = 7;
  EXPECT(CUDA_ERROR_ILLEGAL_STATE,
         DRIVER(cuStreamUpdateCaptureDependencies_v2)(stream, nullptr, nullptr, 0, 0));
  begin(stream);
  OK(DRIVER(cuStreamGetCaptureInfo_v3)(stream, &status, &id, &graph, &dependencies, &data, &count));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(count == 0);
  launchStore(stream, p, 1);
  OK(DRIVER(cuStreamGetCaptureInfo_v2)(stream, &status, &again, &graph, &dependencies, &count));
  CHECK(again == id);
  REQUIRE(count == 1);
  CHECK(typeOf(dependencies[0]) == CU_GRAPH_NODE_TYPE_KERNEL);
  CUgraphNode mine = addStore(graph, p + 4, 2, {dependencies[0]});
  OK(DRIVER(cuStreamUpdateCaptureDependencies_v2)(stream, &mine, nullptr, 1,
                                                  CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  launchStore(stream, p + 8, 3);
  CUgraph ended = end(stream);
  CHECK(ended == graph);
  size_t one = 1;
  CUgraphNode before = nullptr;
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 3);
  OK(DRIVER(cuGraphNodeGetDependencies_v2)(nodes[2], &before, nullptr, &one));
  CHECK(before == mine);
  OK(DRIVER(cuStreamGetCaptureInfo_v3)(stream, &status, nullptr, nullptr, nullptr, nullptr,
                                       nullptr));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  destroy(graph);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a stream captures into a graph that exists") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream stream = createStream();
  const CUgraph graph = create();
  const CUgraphNode first = addStore(graph, p, 1);
  OK(DRIVER(cuStreamBeginCaptureToGraph)(stream, graph, &first, nullptr, 1, kRelaxed));
  launchStore(stream, p, 2);
  CHECK(end(stream) == graph);
  OK(DRIVER(cuStreamBeginCaptureToGraph)(stream, graph, &first, nullptr, 1, kRelaxed));
  launchStore(stream, p + 4, 3);
  OK(DRIVER(cuStreamEndCapture)(stream, nullptr));
  const auto nodes = nodesOf(graph);
  REQUIRE(nodes.size() == 3);
  CHECK(dependencyCount(nodes[1]) == 1);
  CHECK(dependencyCount(nodes[2]) == 1);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  CHECK(valueAt(p) == 2);
  CHECK(valueAt(p + 4) == 3);
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("one stream may be captured in one thread and another run in a second") {
  const CUcontext context = usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUstream stream = createStream();
  begin(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  launchStore(stream, p, 1);
  std::thread([&] {
    OK(DRIVER(cuCtxSetCurrent)(context));
    const CUdeviceptr q = allocate();
    const CUstream other = createStream();
    launchStore(other, q, 2);
    OK(DRIVER(cuStreamSynchronize)(other));
    OK(DRIVER(cuMemFree_v2)(q));
    OK(DRIVER(cuStreamDestroy_v2)(other));
  }).join();
  const CUgraph graph = end(stream);
  CHECK(nodesOf(graph).size() == 1);
  destroy(graph);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

/// Captures two branches, launches the graph often, and checks what they store.
void captureAndLaunch(CUcontext context) {
  OK(DRIVER(cuCtxSetCurrent)(context));
  const CUdeviceptr p = allocate();
  const CUstream origin = createStream(), other = createStream();
  const CUevent event = createEvent();
  for (std::uint32_t round = 1; round <= 10; ++round) {
    begin(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    launchStore(origin, p, round);
    OK(DRIVER(cuEventRecord)(event, origin));
    OK(DRIVER(cuStreamWaitEvent)(other, event, 0));
    launchStore(other, p + 4, round);
    launchStore(origin, p + 8, round);
    OK(DRIVER(cuEventRecord)(event, other));
    OK(DRIVER(cuStreamWaitEvent)(origin, event, 0));
    const CUgraph graph = end(origin);
    const CUgraphExec exec = instantiate(graph);
    for (int i = 0; i < 5; ++i) launch(exec, i % 2 == 0 ? origin : other);
    OK(DRIVER(cuStreamSynchronize)(origin));
    std::uint32_t words[3] = {};
    OK(DRIVER(cuMemcpyDtoHAsync_v2)(words, p, sizeof words, origin));
    OK(DRIVER(cuStreamSynchronize)(origin));
    for (const std::uint32_t word : words) CHECK(word == round);
    destroy(graph, exec);
  }
  OK(DRIVER(cuEventDestroy_v2)(event));
  OK(DRIVER(cuStreamDestroy_v2)(origin));
  OK(DRIVER(cuStreamDestroy_v2)(other));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("threads capture and launch graphs at once") {
  const CUcontext context = usePrimaryContext();
  storeKernel();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(captureAndLaunch, context);
  for (auto& thread : threads) thread.join();
}

}  // namespace
