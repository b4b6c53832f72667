// How executable graphs run: branches, launches of one graph, the order in a stream.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "native/simulator/test/graph_test.h"

namespace {

/// A host node that waits until it is let go.
struct Gate {
  std::atomic<bool> open{false};
  static void wait(void* gate) { static_cast<Gate*>(gate)->open.wait(false); }
  void release() {
    open = true;
    open.notify_all();
  }
};

void count(void* counter) { ++*static_cast<std::atomic<int>*>(counter); }

CUstream createStream() {
  CUstream stream = nullptr;
  OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

TEST_CASE("a branch does not wait for another one") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  CUevent event = nullptr;
  OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  const CUgraph graph = create();
  Gate gate;
  const CUgraphNode root = addEmpty(graph);
  addHost(graph, Gate::wait, &gate, {root});
  const CUgraphNode store = addStore(graph, p, 3, {root});
  CUgraphNode record = nullptr;
  OK(DRIVER(cuGraphAddEventRecordNode)(&record, graph, &store, 1, event));
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  const auto late = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  CUresult status = CUDA_ERROR_NOT_READY;
  while (status == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < late) {
    std::this_thread::yield();
    status = DRIVER(cuEventQuery)(event);
  }
  CHECK(status == CUDA_SUCCESS);
  gate.release();
  CHECK(valueAt(p) == 3);
  destroy(graph, exec);
  OK(DRIVER(cuEventDestroy_v2)(event));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("launches of one executable graph run one after the other") {
  usePrimaryContext();
  const CUstream first = createStream(), second = createStream();
  const CUgraph graph = create();
  std::atomic<int> begun = 0, ended = 0;
  Gate gate;
  addHost(graph, count, &ended,
          {addHost(graph, Gate::wait, &gate, {addHost(graph, count, &begun)})});
  const CUgraphExec exec = instantiate(graph);
  launch(exec, first);
  launch(exec, second);
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(second));
  CHECK(begun <= 1);
  gate.release();
  OK(DRIVER(cuStreamSynchronize)(second));
  CHECK(ended == 2);
  OK(DRIVER(cuStreamQuery)(first));
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(first));
  OK(DRIVER(cuStreamDestroy_v2)(second));
}

TEST_CASE("a destroyed executable graph ends what it has begun") {
  usePrimaryContext();
  const CUstream stream = createStream();
  const CUdeviceptr p = allocate();
  const CUgraph graph = create();
  Gate gate;
  addStore(graph, p, 5, {addHost(graph, Gate::wait, &gate)});
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  destroy(graph, exec);
  gate.release();
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(valueAt(p) == 5);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("many branches fork and join, in a child graph too") {
  usePrimaryContext();
  constexpr unsigned kBranches = 200;
  const CUdeviceptr p = allocate(4 * (kBranches + 1));
  const CUgraph inner = create(), graph = create();
  const CUgraphNode root = addEmpty(inner);
  std::vector<CUgraphNode> branches;
  for (unsigned i = 0; i < kBranches; ++i)
    branches.push_back(addStore(inner, p + 4 * i, i, {root}));
  std::atomic<int> joins = 0;
  addHost(inner, count, &joins, branches);
  CUgraphNode child = nullptr;
  OK(DRIVER(cuGraphAddChildGraphNode)(&child, graph, nullptr, 0, inner));
  addStore(graph, p + 4 * kBranches, kBranches, {child});
  const CUgraphExec exec = instantiate(graph);
  for (int i = 0; i < 3; ++i) launch(exec);
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(joins == 3);
  std::vector<std::uint32_t> words(kBranches + 1);
  OK(DRIVER(cuMemcpyDtoH_v2)(words.data(), p, 4 * words.size()));
  bool right = true;
  for (unsigned i = 0; i <= kBranches; ++i) right = right && words[i] == i;
  CHECK(right);
  destroy(inner);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a change of an executable graph does not affect launches in flight") {
  usePrimaryContext();
  const CUstream stream = createStream();
  const CUdeviceptr p = allocate();
  const CUgraph graph = create();
  Gate gate;
  const CUgraphNode host = addHost(graph, Gate::wait, &gate);
  const CUgraphNode node = addStore(graph, p, 1, {host});
  const CUgraphExec exec = instantiate(graph);
  launch(exec, stream);
  Store changed{storeKernel(), p + 4, 2};
  const CUDA_KERNEL_NODE_PARAMS parameters = changed.parameters();
  OK(DRIVER(cuGraphExecKernelNodeSetParams_v2)(exec, node, &parameters));
  gate.release();
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(valueAt(p) == 1);
  CHECK(valueAt(p + 4) == 0);
  launch(exec, stream);
  CHECK(valueAt(p + 4) == 2);
  destroy(graph, exec);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  OK(DRIVER(cuMemFree_v2)(p));
}

}  // namespace
