// Stream capture in each mode: nothing runs while it lasts, the graph runs as often as it is launched, and what is forbidden depends on the mode.
// conformance: judges=itself
#include "graphs.h"

constexpr int n = 1000;

static void captureAndReplay(cudaStreamCaptureMode mode, int* d) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
  EXPECT_OK(cudaMemset(d, 0, n * sizeof(int)));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaStreamBeginCapture(stream, mode));
  for (int by = 1; by <= 10; ++by) addTo<<<(n + 127) / 128, 128, 0, stream>>>(d, n, by);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusActive);
  EXPECT_OK(cudaStreamEndCapture(stream, &graph));
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusNone);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(deviceHas(d, n, 0));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphDestroy(graph));
  for (int launch = 1; launch <= 50; ++launch) EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(deviceHas(d, n, 50 * 55));
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaStreamDestroy(stream));
}

/// Allocating is forbidden during a global capture, and allowed during a relaxed one.
static void allocateInside(cudaStreamCaptureMode mode, bool allowed) {
  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamBeginCapture(stream, mode));
  const cudaError_t allocated = cudaMalloc(&memory, 1 << 20);
  EXPECT(allocated == (allowed ? cudaSuccess : cudaErrorStreamCaptureUnsupported));
  cudaGetLastError();
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  EXPECT(ended == (allowed ? cudaSuccess : cudaErrorStreamCaptureInvalidated));
  EXPECT((graph != nullptr) == allowed);
  cudaGetLastError();
  if (graph != nullptr) EXPECT_OK(cudaGraphDestroy(graph));
  if (allowed) EXPECT_OK(cudaFree(memory));
  EXPECT_OK(cudaStreamDestroy(stream));
}

int main() {
  int* d = nullptr;
  EXPECT_OK(cudaMalloc(&d, n * sizeof(int)));
  for (const auto mode : {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) captureAndReplay(mode, d);
  allocateInside(cudaStreamCaptureModeGlobal, false);
  allocateInside(cudaStreamCaptureModeThreadLocal, false);
  allocateInside(cudaStreamCaptureModeRelaxed, true);
  // A thread may allow itself what a global capture forbids.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT(mode == cudaStreamCaptureModeGlobal);
  allocateInside(cudaStreamCaptureModeGlobal, true);
  EXPECT_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  EXPECT(mode == cudaStreamCaptureModeRelaxed);
  captureAndReplay(cudaStreamCaptureModeGlobal, d);
  return verdict();
}
