// Memory that a graph allocates and frees itself: by nodes, and by a captured cudaMallocAsync.
// conformance: judges=itself memory=256MiB
#include "graphs.h"

constexpr int n = 1 << 20;

static std::uint64_t attribute(cudaGraphMemAttributeType which) {
  std::uint64_t value = 0;
  EXPECT_OK(cudaDeviceGetGraphMemAttribute(0, which, &value));
  return value;
}

static void byNodes(cudaStream_t stream, int* result) {
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t take = nullptr, fill = nullptr, copy = nullptr, give = nullptr;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  cudaMemAllocNodeParams memory{};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = n * sizeof(int);
  EXPECT_OK(cudaGraphAddMemAllocNode(&take, graph, nullptr, 0, &memory));
  EXPECT(memory.dptr != nullptr);
  cudaMemsetParams memset{};
  memset.dst = memory.dptr, memset.value = 77, memset.elementSize = 4, memset.width = n, memset.height = 1;
  EXPECT_OK(cudaGraphAddMemsetNode(&fill, graph, &take, 1, &memset));
  EXPECT_OK(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, result, memory.dptr, n * sizeof(int), cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaGraphAddMemFreeNode(&give, graph, &copy, 1, memory.dptr));
  cudaMemAllocNodeParams known{};
  EXPECT_OK(cudaGraphMemAllocNodeGetParams(take, &known));
  EXPECT(known.dptr == memory.dptr && known.bytesize == n * sizeof(int));
  void* freed = nullptr;
  EXPECT_OK(cudaGraphMemFreeNodeGetParams(give, &freed));
  EXPECT(freed == memory.dptr);
  EXPECT_OK(cudaMemset(result, 0, n * sizeof(int)));
  for (int round = 0; round < 5; ++round) runOnce(graph, stream);
  EXPECT(deviceHas(result, n, 77));
  EXPECT_OK(cudaGraphDestroy(graph));
}

static void byCapture(cudaStream_t stream, int* result) {
  cudaGraph_t graph = nullptr;
  int* inside = nullptr;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_OK(cudaMallocAsync(&inside, n * sizeof(int), stream));
  EXPECT_OK(cudaMemsetAsync(inside, 0, n * sizeof(int), stream));
  addTo<<<n / 256, 256, 0, stream>>>(inside, n, 42);
  EXPECT_OK(cudaMemcpyAsync(result, inside, n * sizeof(int), cudaMemcpyDeviceToDevice, stream));
  EXPECT_OK(cudaFreeAsync(inside, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 10; ++launch) EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(deviceHas(result, n, 42));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

int main() {
  int* result = nullptr;
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaMalloc(&result, n * sizeof(int)));
  EXPECT_OK(cudaStreamCreate(&stream));
  byNodes(stream, result);
  byCapture(stream, result);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaDeviceGraphMemTrim(0));
  EXPECT(attribute(cudaGraphMemAttrUsedMemCurrent) == 0);
  EXPECT(attribute(cudaGraphMemAttrReservedMemCurrent) == 0);
  return verdict();
}
