// A graph whose memory nodes need more than there is: an error, and other work runs. What "there is" is the quota where one is set.
// After that error driver 580 keeps what the launch got, until the process ends (H200). A quota refuses the graph before.
// conformance: judges=itself alone=yes
// conformance: build=quota judges=itself memory=256MiB alone=yes
#include "graphs.h"

/// Allocates, fills and frees in a graph. The first error; a small result if it worked.
static cudaError_t run(std::size_t bytes, unsigned char* result) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t take = nullptr, fill = nullptr, copy = nullptr, give = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaMemAllocNodeParams memory{};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = bytes;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  cudaError_t status = cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &memory);
  if (status == cudaSuccess) {
    cudaMemsetParams memset{};
    memset.dst = memory.dptr, memset.value = 9, memset.elementSize = 1, memset.width = 16, memset.height = 1;
    EXPECT_OK(cudaGraphAddMemsetNode(&fill, graph, &take, 1, &memset));
    EXPECT_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, result, memory.dptr, 16, cudaMemcpyDeviceToDevice));
    EXPECT_OK(cudaGraphAddMemFreeNode(&give, graph, &copy, 1, memory.dptr));
    status = cudaGraphInstantiate(&exec, graph, 0);
  }
  if (status == cudaSuccess) status = cudaGraphLaunch(exec, nullptr);
  EXPECT_OK(cudaDeviceSynchronize());
  if (exec != nullptr) EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  EXPECT(cudaGetLastError() == status);
  return status;
}

int main() {
  std::size_t available = 0, total = 0;
  unsigned char *result = nullptr, host[16] = {};
  EXPECT_OK(cudaMalloc(&result, sizeof host));
  EXPECT_OK(cudaMemset(result, 0, sizeof host));
  EXPECT(run(8 << 20, result) == cudaSuccess);
  EXPECT_OK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 9 && host[15] == 9);
  EXPECT_OK(cudaDeviceGraphMemTrim(0));
  EXPECT_OK(cudaMemGetInfo(&available, &total));
  EXPECT(run(total + (std::size_t{64} << 20), result) == cudaErrorMemoryAllocation);
  EXPECT_OK(cudaMemset(result, 3, sizeof host));
  EXPECT_OK(cudaMemcpy(host, result, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 3 && host[15] == 3);
  return verdict();
}
