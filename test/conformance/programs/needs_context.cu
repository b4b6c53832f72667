// Calls that need a current context although their objects name one.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

static CUresult instantiate(CUgraph graph) {
  CUgraphExec executable = nullptr;
  const CUresult status = cuGraphInstantiate(&executable, graph, 0);
  if (status == CUDA_SUCCESS) EXPECT(cuGraphExecDestroy(executable) == CUDA_SUCCESS);
  return status;
}

static CUresult share(CUdeviceptr memory) {
  CUipcMemHandle handle{};
  return cuIpcGetMemHandle(&handle, memory);
}

int main() {
  startDriver();
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUdeviceptr memory = 0;
  EXPECT(cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  EXPECT(cuGraphAddEmptyNode(&node, graph, nullptr, 0) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&memory, 4096) == CUDA_SUCCESS);
  EXPECT(instantiate(graph) == CUDA_SUCCESS);
  EXPECT(share(memory) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
  EXPECT(instantiate(graph) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(share(memory) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuGraphDestroy(graph) == CUDA_SUCCESS);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  return verdict();
}
