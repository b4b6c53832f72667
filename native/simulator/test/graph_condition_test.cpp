// Conditional nodes: loops that kernels end, bodies, what is refused, and how a fault ends a loop.
#include <cstdint>
#include <vector>

#include "native/simulator/test/graph_test.h"

namespace {

/// set: gives the condition a value; count: adds 1, and goes on below a limit.
constexpr char kConditions[] = R"(
.version 8.0
.target sm_75
.address_size 64

.extern .func cudaGraphSetConditional(.param .b64 handle, .param .b32 value);

.visible .entry set(.param .u64 handle, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [handle];
  ld.param.u32 %r1, [value];
  {
    .param .b64 h;
    .param .b32 v;
    st.param.b64 [h], %rd1;
    st.param.b32 [v], %r1;
    call cudaGraphSetConditional, (h, v);
  }
  ret;
}

.visible .entry count(.param .u64 handle, .param .u64 at, .param .u32 limit)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [handle];
  ld.param.u64 %rd2, [at];
  ld.param.u32 %r1, [limit];
  cvta.to.global.u64 %rd3, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  setp.lt.u32 %p1, %r2, %r1;
  selp.u32 %r3, 1, 0, %p1;
  {
    .param .b64 h;
    .param .b32 v;
    st.param.b64 [h], %rd1;
    st.param.b32 [v], %r3;
    call cudaGraphSetConditional, (h, v);
  }
  ret;
}
)";

CUgraphConditionalHandle makeHandle(CUgraph graph, unsigned value = 0) {
  CUgraphConditionalHandle handle = 0;
  OK(DRIVER(cuGraphConditionalHandleCreate)(&handle, graph, nullptr, value,
                                            CU_GRAPH_COND_ASSIGN_DEFAULT));
  return handle;
}

struct Conditional {
  CUresult status = CUDA_SUCCESS;
  CUgraphNode node = nullptr;
  std::vector<CUgraph> bodies;

  Conditional(CUgraph graph, CUgraphConditionalHandle handle, CUgraphConditionalNodeType type,
              unsigned size = 1) {
    CUgraphNodeParams parameters{};
    parameters.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    parameters.conditional.handle = handle;
    parameters.conditional.type = type;
    parameters.conditional.size = size;
    status = DRIVER(cuGraphAddNode_v2)(&node, graph, nullptr, nullptr, 0, &parameters);
    CUgraph* made = parameters.conditional.phGraph_out;
    if (status == CUDA_SUCCESS) bodies.assign(made, made + size);
  }
};

CUgraphNode addCount(CUgraph graph, CUgraphConditionalHandle handle, CUdeviceptr at,
                     std::uint32_t limit) {
  static const CUfunction function = functionOf(kConditions, "count");
  void* arguments[] = {&handle, &at, &limit};
  return addKernel(graph, function, arguments);
}

CUresult tryToInstantiate(CUgraph graph, CUgraphInstantiateResult& result) {
  CUgraphExec exec = nullptr;
  CUDA_GRAPH_INSTANTIATE_PARAMS parameters{};
  const CUresult status = DRIVER(cuGraphInstantiateWithParams)(&exec, graph, &parameters);
  result = parameters.result_out;
  if (status == CUDA_SUCCESS) OK(DRIVER(cuGraphExecDestroy)(exec));
  return status;
}

TEST_CASE("a loop ends when a kernel of its body says so, at each launch") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUgraph graph = create();
  const auto handle = makeHandle(graph, 1);
  const Conditional loop(graph, handle, CU_GRAPH_COND_TYPE_WHILE);
  OK(loop.status);
  addCount(loop.bodies[0], handle, p, 10);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  CHECK(valueAt(p) == 10);
  launch(exec);
  CHECK(valueAt(p) == 11);
  destroy(graph, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("an executable graph keeps the conditions of a graph that has ended") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUgraph graph = create();
  const auto handle = makeHandle(graph, 1);
  addCount(Conditional(graph, handle, CU_GRAPH_COND_TYPE_WHILE).bodies[0], handle, p, 3);
  const CUgraphExec exec = instantiate(graph);
  OK(DRIVER(cuGraphDestroy)(graph));
  launch(exec);
  CHECK(valueAt(p) == 3);
  OK(DRIVER(cuGraphExecDestroy)(exec));
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a condition has one node, of its graph or of a body in it, and a known size") {
  usePrimaryContext();
  const CUgraph graph = create(), other = create();
  const auto handle = makeHandle(graph), nested = makeHandle(graph);
  constexpr auto kIf = CU_GRAPH_COND_TYPE_IF;
  EXPECT(CUDA_ERROR_INVALID_VALUE, Conditional(other, handle, kIf).status);
  EXPECT(CUDA_ERROR_INVALID_VALUE, Conditional(graph, handle + 1000, kIf).status);
  EXPECT(CUDA_ERROR_INVALID_VALUE, Conditional(graph, handle, kIf, 3).status);
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         Conditional(graph, handle, static_cast<CUgraphConditionalNodeType>(7)).status);
  const Conditional outer(graph, handle, kIf);
  OK(outer.status);
  EXPECT(CUDA_ERROR_INVALID_VALUE, Conditional(graph, handle, kIf).status);
  OK(Conditional(outer.bodies[0], nested, kIf).status);
  OK(DRIVER(cuGraphDestroyNode)(outer.node));  // with the nodes of its body
  OK(Conditional(graph, handle, kIf).status);
  OK(Conditional(graph, nested, kIf).status);
  destroy(graph);
  destroy(other);
}

TEST_CASE("bodies nest, but not without an end") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUgraph inner = graph;
  for (int level = 0; level < 1024; ++level) {
    const Conditional conditional(inner, makeHandle(inner), CU_GRAPH_COND_TYPE_IF);
    OK(conditional.status);
    inner = conditional.bodies[0];
  }
  const CUgraphExec exec = instantiate(graph);
  EXPECT(CUDA_ERROR_NOT_SUPPORTED,
         Conditional(inner, makeHandle(inner), CU_GRAPH_COND_TYPE_IF).status);
  destroy(graph, exec);
}

TEST_CASE("a graph is not executable with an unused condition, or with a host function in a body") {
  usePrimaryContext();
  const CUgraph graph = create();
  const auto handle = makeHandle(graph);
  CUgraphInstantiateResult result{};
  EXPECT(CUDA_ERROR_INVALID_VALUE, tryToInstantiate(graph, result));
  CHECK(result == CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
  const Conditional conditional(graph, handle, CU_GRAPH_COND_TYPE_IF);
  OK(tryToInstantiate(graph, result));
  const CUgraphNode host = addHost(
      conditional.bodies[0], [](void*) {}, nullptr);
  EXPECT(CUDA_ERROR_INVALID_VALUE, tryToInstantiate(graph, result));
  OK(DRIVER(cuGraphDestroyNode)(host));
  OK(tryToInstantiate(graph, result));
  OK(DRIVER(cuGraphDestroyNode)(conditional.node));
  EXPECT(CUDA_ERROR_INVALID_VALUE, tryToInstantiate(graph, result));
  destroy(graph);
}

TEST_CASE("a graph with a condition has one executable graph and no copy") {
  usePrimaryContext();
  const CUgraph graph = create(), parent = create();
  OK(Conditional(graph, makeHandle(graph), CU_GRAPH_COND_TYPE_IF).status);
  const CUgraphExec exec = instantiate(graph);
  CUgraphExec second = nullptr;
  CUgraph copy = nullptr;
  CUgraphNode child = nullptr;
  EXPECT(CUDA_ERROR_NOT_SUPPORTED, DRIVER(cuGraphInstantiateWithFlags)(&second, graph, 0));
  EXPECT(CUDA_ERROR_NOT_SUPPORTED, DRIVER(cuGraphClone)(&copy, graph));
  EXPECT(CUDA_ERROR_NOT_SUPPORTED,
         DRIVER(cuGraphAddChildGraphNode)(&child, parent, nullptr, 0, graph));
  destroy(graph, exec);
  destroy(parent);
}

TEST_CASE("an update takes the condition and the bodies of the graph, but no other type") {
  usePrimaryContext();
  const CUdeviceptr p = allocate();
  const CUgraph first = create(), second = create(), loop = create();
  addStore(Conditional(first, makeHandle(first, 0), CU_GRAPH_COND_TYPE_IF).bodies[0], p, 1);
  addStore(Conditional(second, makeHandle(second, 1), CU_GRAPH_COND_TYPE_IF).bodies[0], p, 2);
  addStore(Conditional(loop, makeHandle(loop, 1), CU_GRAPH_COND_TYPE_WHILE).bodies[0], p, 3);
  const CUgraphExec exec = instantiate(first);
  launch(exec);
  CHECK(valueAt(p) == 0);
  CUgraphExecUpdateResultInfo info{};
  OK(DRIVER(cuGraphExecUpdate_v2)(exec, second, &info));
  destroy(second);
  launch(exec);
  CHECK(valueAt(p) == 2);
  EXPECT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, DRIVER(cuGraphExecUpdate_v2)(exec, loop, &info));
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
  destroy(loop);
  destroy(first, exec);
  OK(DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("a fault ends a loop, and so does a handle that names no condition") {  // the last one
  usePrimaryContext();
  const CUgraph graph = create();
  const Conditional loop(graph, makeHandle(graph, 1), CU_GRAPH_COND_TYPE_WHILE);
  CUgraphConditionalHandle unknown = 1 << 20;
  std::uint32_t value = 1;
  void* arguments[] = {&unknown, &value};
  addKernel(loop.bodies[0], functionOf(kConditions, "set"), arguments);
  launch(instantiate(graph));
  EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuCtxSynchronize)());
}

}  // namespace
