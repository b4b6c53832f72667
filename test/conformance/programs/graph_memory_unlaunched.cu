// Memory of a graph that was never launched cannot be freed: that call fails, and the next succeeds.
// conformance: judges=itself memory=256MiB
#include "graphs.h"

constexpr std::size_t bytes = 1 << 20;

static void* byNode(cudaGraph_t* graph) {
  cudaGraphNode_t take = nullptr;
  EXPECT_OK(cudaGraphCreate(graph, 0));
  cudaMemAllocNodeParams memory{};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.bytesize = bytes;
  EXPECT_OK(cudaGraphAddMemAllocNode(&take, *graph, nullptr, 0, &memory));
  return memory.dptr;
}

static void* byCapture(cudaGraph_t* graph, cudaStream_t stream) {
  void* memory = nullptr;
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  EXPECT_OK(cudaMallocAsync(&memory, bytes, stream));
  EXPECT_OK(cudaStreamEndCapture(stream, graph));
  return memory;
}

int main() {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  for (int round = 0; round < 200; ++round) {
    cudaGraph_t graph = nullptr;
    void* memory = round % 2 == 0 ? byNode(&graph) : byCapture(&graph, stream);
    EXPECT(memory != nullptr);
    EXPECT(cudaFreeAsync(memory, stream) == cudaErrorInvalidValue);
    cudaGetLastError();
    EXPECT_OK(cudaGraphDestroy(graph));
    EXPECT_OK(cudaStreamSynchronize(stream));
  }
  return verdict();
}
