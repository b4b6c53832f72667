// Handles of graphs that hold graphs: none outlives its object, and nothing ends that is in use.
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"
#include "wire/graph.h"

namespace {

struct Graphs : worker::test::SimulatedSession {
  Graphs() : SimulatedSession(64 * worker::test::kMiB) {}

  std::uint64_t handles() const { return session.handles.size(); }
  std::uint64_t create() { return frames.call(CallNumber::cuGraphCreate, 0u).handle; }
  CUresult destroy(CallNumber call, std::uint64_t handle) {
    return frames.call(call, handle).status;
  }
  std::uint64_t addHost(std::uint64_t graph) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_HOST;
    params.host.fn = reinterpret_cast<CUhostFn>(0x1000);
    return worker::test::addNode(frames, graph, params).handle;
  }
  /// A node that holds a copy of the other graph.
  std::uint64_t addChild(std::uint64_t graph, std::uint64_t other) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_GRAPH;
    params.graph.graph = reinterpret_cast<CUgraph>(other);
    return worker::test::addNode(frames, graph, params).handle;
  }
  /// A conditional node, and its only body.
  std::pair<std::uint64_t, std::uint64_t> addLoop(std::uint64_t graph) {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle =
        frames.call(CallNumber::cuGraphConditionalHandleCreate, graph, context, 0u, 0u).handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
    params.conditional.size = 1;
    params.conditional.ctx = reinterpret_cast<CUcontext>(context);
    const auto made = worker::test::addNode(frames, graph, params);
    CHECK(made.status == CUDA_SUCCESS);
    return {made.handle, made.fourth};
  }
};

TEST_CASE_FIXTURE(Graphs, "the node that the driver refuses ends with the graph that holds it") {
  const std::uint64_t inner = create(), outer = create();
  addHost(inner);
  const auto [loop, body] = addLoop(outer);
  const std::uint64_t before = handles();
  const std::uint64_t child = addChild(body, inner);
  const auto refused = frames.call(CallNumber::cuGraphInstantiateWithParams, outer,
                                   std::uint64_t{0}, std::uint64_t{0});
  CHECK(refused.status == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroy(CallNumber::cuGraphDestroyNode, child) == CUDA_SUCCESS);
  CHECK(handles() == before);
  const std::uint64_t node = addHost(body);
  const auto again = frames.call(CallNumber::cuGraphInstantiateWithParams, outer, std::uint64_t{0},
                                 std::uint64_t{0});
  CHECK(again.third == node);
}

TEST_CASE_FIXTURE(Graphs, "a node that is found in a clone ends with the graph that holds it") {
  const std::uint64_t inner = create(), outer = create();
  addHost(inner);
  const std::uint64_t child = addChild(outer, inner);
  const std::uint64_t held = frames.call(CallNumber::cuGraphChildGraphNodeGetGraph, child).handle;
  const std::uint64_t node =
      frames.call(CallNumber::graphElements, wire::GraphElements::nodes, held, std::uint64_t{0})
          .third;
  const std::uint64_t clone = frames.call(CallNumber::cuGraphClone, outer).handle;
  const std::uint64_t before = handles();
  const auto found = frames.call(CallNumber::cuGraphNodeFindInClone, child, clone);
  CHECK(found.status == CUDA_SUCCESS);
  CHECK(handles() == before + 1);
  const std::uint64_t copied =
      frames.call(CallNumber::cuGraphChildGraphNodeGetGraph, found.handle).handle;
  CHECK(frames.call(CallNumber::cuGraphNodeFindInClone, node, copied).status == CUDA_SUCCESS);
  CHECK(handles() == before + 3);
  CHECK(destroy(CallNumber::cuGraphDestroyNode, found.handle) == CUDA_SUCCESS);
  CHECK(handles() == before);
}

TEST_CASE_FIXTURE(Graphs,
                  "while a stream captures into a body, neither it nor what holds it ends") {
  const std::uint64_t graph = create();
  const auto [loop, body] = addLoop(graph);
  const std::uint64_t other = addHost(graph);
  const std::uint64_t stream = frames.call(CallNumber::cuStreamCreate, 1u).handle;
  const auto begun =
      frames.send(CallNumber::cuStreamBeginCaptureToGraph, [&](wire::Encoder& frame) {
        frame.put(stream);
        frame.put(body);
        frame.put(std::uint64_t{0});  // dependencies
        frame.put(std::uint64_t{0});  // their kinds
        frame.put(std::uint64_t{0});  // their number
        frame.put(CU_STREAM_CAPTURE_MODE_RELAXED);
      });
  CHECK(begun.status == CUDA_SUCCESS);
  CHECK(destroy(CallNumber::cuGraphDestroy, graph) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroy(CallNumber::cuGraphDestroyNode, loop) == CUDA_ERROR_INVALID_VALUE);
  CHECK(destroy(CallNumber::cuGraphDestroyNode, other) == CUDA_SUCCESS);
  CHECK(frames.call(CallNumber::cuStreamEndCapture, stream).status == CUDA_SUCCESS);
  CHECK(destroy(CallNumber::cuGraphDestroyNode, loop) == CUDA_SUCCESS);
  CHECK(destroy(CallNumber::cuGraphDestroy, graph) == CUDA_SUCCESS);
}

}  // namespace
