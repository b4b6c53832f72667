// A capture that forks into two streams by events and joins them again, three times in a row, and work of a fourth stream beside it that runs at once.
// conformance: judges=itself
#include "graphs.h"

__global__ void sum(int* to, const int* a, const int* b, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = a[i] + b[i];
}

int main() {
  constexpr int n = 3000, blocks = (n + 255) / 256;
  int *a = nullptr, *b = nullptr, *c = nullptr, *beside = nullptr;
  for (int** d : {&a, &b, &c, &beside}) {
    EXPECT_OK(cudaMalloc(d, n * sizeof(int)));
    EXPECT_OK(cudaMemset(*d, 0, n * sizeof(int)));
  }
  EXPECT_OK(cudaDeviceSynchronize());
  cudaStream_t origin = nullptr, left = nullptr, right = nullptr, other = nullptr;
  for (cudaStream_t* stream : {&origin, &left, &right, &other}) EXPECT_OK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  cudaEvent_t fork = nullptr, joinLeft = nullptr, joinRight = nullptr;
  for (cudaEvent_t* event : {&fork, &joinLeft, &joinRight}) EXPECT_OK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  EXPECT_OK(cudaStreamBeginCapture(origin, cudaStreamCaptureModeRelaxed));
  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(cudaEventRecord(fork, origin));
    EXPECT_OK(cudaStreamWaitEvent(left, fork, 0));
    EXPECT_OK(cudaStreamWaitEvent(right, fork, 0));
    addTo<<<blocks, 256, 0, left>>>(a, n, 1);
    addTo<<<blocks, 256, 0, right>>>(b, n, 10);
    addTo<<<blocks, 256, 0, right>>>(b, n, 10);
    EXPECT_OK(cudaEventRecord(joinLeft, left));
    EXPECT_OK(cudaEventRecord(joinRight, right));
    EXPECT_OK(cudaStreamWaitEvent(origin, joinLeft, 0));
    EXPECT_OK(cudaStreamWaitEvent(origin, joinRight, 0));
    sum<<<blocks, 256, 0, origin>>>(c, a, b, n);
    addTo<<<blocks, 256, 0, other>>>(beside, n, 5);
  }
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_OK(cudaStreamIsCapturing(left, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT_OK(cudaStreamIsCapturing(other, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaStreamSynchronize(other));
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaStreamEndCapture(origin, &graph));
  EXPECT(deviceHas(beside, n, 15));
  EXPECT(deviceHas(c, n, 0));
  EXPECT_OK(cudaStreamIsCapturing(left, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  std::size_t nodes = 0, roots = 0;
  EXPECT_OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  EXPECT_OK(cudaGraphGetRootNodes(graph, nullptr, &roots));
  EXPECT(nodes == 3 * 4);
  EXPECT(roots == 2);
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  for (int launch = 0; launch < 20; ++launch) EXPECT_OK(cudaGraphLaunch(exec, origin));
  EXPECT_OK(cudaStreamSynchronize(origin));
  EXPECT(deviceHas(a, n, 60));
  EXPECT(deviceHas(b, n, 1200));
  EXPECT(deviceHas(c, n, 1260));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
  return verdict();
}
