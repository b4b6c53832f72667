// Conditional nodes: the reply names each body, so their number has a limit.
#include "native/worker/test/session_fixture.h"
#include "test/unit/program.h"

namespace {

TEST_CASE("a conditional node has handles for its bodies, up to a limit, and they end with it") {
  worker::test::SimulatedSession test(64 * worker::test::kMiB);
  const std::uint64_t before = test.session.handles.size();
  const std::uint64_t graph = test.frames.call(CallNumber::cuGraphCreate, 0u).handle;
  const auto add = [&](unsigned bodies) {
    const auto condition =
        test.frames.call(CallNumber::cuGraphConditionalHandleCreate, graph, test.context, 0u, 0u);
    CHECK(condition.status == CUDA_SUCCESS);
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = condition.handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_SWITCH;
    params.conditional.size = bodies;
    params.conditional.ctx = reinterpret_cast<CUcontext>(test.context);
    return worker::test::addNode(test.frames, graph, params).status;
  };
  CHECK(add(4096) == CUDA_SUCCESS);
  CHECK(test.session.handles.size() == before + 2 + 4096);
  CHECK(add(4097) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(add(0xffffffff) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(test.session.handles.size() == before + 2 + 4096);
  CHECK(test.frames.call(CallNumber::cuGraphDestroy, graph).status == CUDA_SUCCESS);
  CHECK(test.session.handles.size() == before);
}

}  // namespace
