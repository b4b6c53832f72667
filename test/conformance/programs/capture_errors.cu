// What invalidates a capture, and that the stream is as before when it has ended.
// conformance: judges=itself
#include "graphs.h"

static int* d = nullptr;

static void works(cudaStream_t stream, int* expected) {
  addTo<<<1, 32, 0, stream>>>(d, 32, 1);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(deviceHas(d, 32, ++*expected));
}

int main() {
  int expected = 0;
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraph_t graph = nullptr;
  EXPECT_OK(cudaMalloc(&d, 32 * sizeof(int)));
  EXPECT_OK(cudaMemset(d, 0, 32 * sizeof(int)));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreate(&event));

  // Waiting for a stream that captures.
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  addTo<<<1, 32, 0, stream>>>(d, 32, 1);
  EXPECT(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  EXPECT_OK(cudaStreamIsCapturing(stream, &status));
  EXPECT(status == cudaStreamCaptureStatusInvalidated);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  EXPECT(graph == nullptr);
  cudaGetLastError();
  works(stream, &expected);

  // A fork that is not joined.
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  EXPECT_OK(cudaEventRecord(event, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, event, 0));
  addTo<<<1, 32, 0, other>>>(d, 32, 1);
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureUnjoined);
  EXPECT(graph == nullptr);
  cudaGetLastError();
  works(stream, &expected);
  works(other, &expected);

  // The legacy stream beside a capture of a stream that waits for it.
  cudaStream_t blocking = nullptr;
  EXPECT_OK(cudaStreamCreate(&blocking));
  EXPECT_OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
  addTo<<<1, 32>>>(d, 32, 1);
  EXPECT(cudaGetLastError() == cudaErrorStreamCaptureImplicit);
  EXPECT(cudaStreamEndCapture(blocking, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  works(blocking, &expected);

  // Ending what did not begin.
  EXPECT(cudaStreamEndCapture(stream, &graph) == cudaErrorIllegalState);
  cudaGetLastError();
  works(stream, &expected);
  return verdict();
}
