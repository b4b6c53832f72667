// Memory that graphs allocate and free.
#include <cstddef>

#include "native/simulator/test/graph_test.h"

namespace {

CUgraphNode addAllocation(CUgraph graph, std::size_t bytes, CUdeviceptr& address) {
  CUDA_MEM_ALLOC_NODE_PARAMS parameters{};
  parameters.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  parameters.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  parameters.bytesize = bytes;
  CUgraphNode node = nullptr;
  OK(DRIVER(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &parameters));
  address = parameters.dptr;
  return node;
}

TEST_CASE("a graph allocates and frees memory") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUdeviceptr p = 0;
  const CUdeviceptr result = allocate();
  const CUgraphNode allocation = addAllocation(graph, 1 << 20, p);
  const CUgraphNode kernel = addStore(graph, p, 12, {allocation});
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  CUDA_MEMCPY3D copying{};
  copying.srcMemoryType = copying.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copying.srcDevice = p, copying.dstDevice = result;
  copying.WidthInBytes = 4, copying.Height = copying.Depth = 1;
  CUgraphNode copy = nullptr, end = nullptr;
  OK(DRIVER(cuGraphAddMemcpyNode)(&copy, graph, &kernel, 1, &copying, context));
  OK(DRIVER(cuGraphAddMemFreeNode)(&end, graph, &copy, 1, p));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphAddMemFreeNode)(&end, graph, &copy, 1, p));
  CHECK(DRIVER(cuGraphDestroyNode)(copy) != CUDA_SUCCESS);
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  launch(exec);
  CHECK(valueAt(result) == 12);
  cuuint64_t bytes = 0;
  OK(DRIVER(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes));
  CHECK(bytes >= 1 << 20);
  destroy(graph, exec);
  OK(DRIVER(cuDeviceGraphMemTrim)(0));
  OK(DRIVER(cuDeviceGetGraphMemAttribute)(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes));
  CHECK(bytes == 0);
  OK(DRIVER(cuMemFree_v2)(result));
}

TEST_CASE("memory that a graph does not free outlives it") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUdeviceptr p = 0;
  addStore(graph, p, 8, {addAllocation(graph, 4096, p)});
  const CUgraphExec once = instantiate(graph);
  launch(once);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuGraphLaunch)(once, nullptr));
  OK(DRIVER(cuMemFreeAsync)(p, nullptr));
  launch(once);
  OK(DRIVER(cuGraphExecDestroy)(once));
  destroy(graph);
  CHECK(valueAt(p) == 8);
  OK(DRIVER(cuMemFree_v2)(p));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFree_v2)(p));
}

TEST_CASE("the next launch frees memory if the flag asks for it") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUdeviceptr p = 0;
  addAllocation(graph, 4096, p);
  const CUgraphExec exec = instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  cuuint64_t flags = 0;
  OK(DRIVER(cuGraphExecGetFlags)(exec, &flags));
  CHECK(flags == CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH);
  for (int i = 0; i < 3; ++i) launch(exec);
  OK(DRIVER(cuMemFree_v2)(p));
  CUgraphExec onDevice = nullptr;
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuGraphInstantiateWithFlags)(&onDevice, graph,
                                             flags | CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH));
  destroy(graph, exec);
}

}  // namespace
