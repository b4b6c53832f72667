// A fault in a graph ends the process's contexts, as a fault in a stream does.
#include <cstdint>

#include "native/simulator/test/graph_test.h"

namespace {

TEST_CASE("a fault in a graph ends it, and completes its events") {
  usePrimaryContext();
  const CUgraph graph = create();
  CUevent event = nullptr;
  OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  const CUgraphNode wrong = addStore(graph, 0x100, 1);
  bool ran = false;
  const CUgraphNode host =
      addHost(graph, [](void* flag) { *static_cast<bool*>(flag) = true; }, &ran, {wrong});
  CUgraphNode record = nullptr;
  OK(DRIVER(cuGraphAddEventRecordNode)(&record, graph, &host, 1, event));
  const CUgraphExec exec = instantiate(graph);
  launch(exec);
  EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuCtxSynchronize)());
  EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuEventSynchronize)(event));
  EXPECT(CUDA_ERROR_ILLEGAL_ADDRESS, DRIVER(cuGraphLaunch)(exec, nullptr));
  CHECK(!ran);
}

}  // namespace
