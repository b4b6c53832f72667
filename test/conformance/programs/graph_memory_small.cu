// A graph of 1,000 small allocations, each freed before the next, needs little memory.
// conformance: judges=itself memory=256MiB
// conformance: build=quota judges=itself memory=256MiB
#include "graphs.h"

int main() {
  constexpr int rounds = 1000;
  constexpr std::size_t bytes = 4096;
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  unsigned char *result = nullptr, host[rounds] = {};
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMalloc(&result, rounds));
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int round = 0; round < rounds; ++round) {
    void* memory = nullptr;
    EXPECT_OK(cudaMallocAsync(&memory, bytes, stream));
    EXPECT_OK(cudaMemsetAsync(memory, round % 251, bytes, stream));
    EXPECT_OK(cudaMemcpyAsync(result + round, memory, 1, cudaMemcpyDeviceToDevice, stream));
    EXPECT_OK(cudaFreeAsync(memory, stream));
  }
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaMemcpy(host, result, rounds, cudaMemcpyDeviceToHost));
  for (int round = 0; round < rounds; ++round) EXPECT(host[round] == round % 251);
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
