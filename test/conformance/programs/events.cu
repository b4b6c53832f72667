// Events: what a query says before, during and after, and when a time can be asked for. A host function holds the stream while we look.
// conformance:
#include <atomic>
#include <thread>

#include "show.h"

static std::atomic<bool> open{false};

static void CUDART_CB waitUntilOpen(void*) {
  while (!open) std::this_thread::yield();
}

int main() {
  cudaStream_t stream = nullptr;
  cudaEvent_t start = nullptr, end = nullptr, untimed = nullptr, never = nullptr, refused = nullptr;
  float time = -1;
  SHOW(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SHOW(cudaEventCreate(&start));
  SHOW(cudaEventCreate(&end));
  SHOW(cudaEventCreate(&never));
  SHOW(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming | cudaEventBlockingSync));
  SHOW(cudaEventCreateWithFlags(&refused, 1 << 20));
  SHOW(cudaEventQuery(start));
  SHOW(cudaEventSynchronize(start));
  SHOW(cudaEventElapsedTime(&time, start, end));
  SHOW(cudaEventRecord(start, stream));
  SHOW(cudaEventSynchronize(start));
  SHOW(cudaLaunchHostFunc(stream, waitUntilOpen, nullptr));
  SHOW(cudaEventRecord(end, stream));
  SHOW(cudaEventRecord(untimed, stream));
  SHOW(cudaEventQuery(start));
  SHOW(cudaEventQuery(end));
  SHOW(cudaEventQuery(untimed));
  SHOW(cudaStreamQuery(stream));
  SHOW(cudaEventElapsedTime(&time, start, end));
  SHOW(cudaPeekAtLastError());
  open = true;
  SHOW(cudaEventSynchronize(end));
  SHOW(cudaEventSynchronize(untimed));
  SHOW(cudaEventQuery(end));
  SHOW(cudaStreamSynchronize(stream));
  SHOW(cudaStreamQuery(stream));
  SHOW(cudaEventElapsedTime(&time, start, end));
  std::printf("time passed: %s\n", yesNo(time >= 0));
  SHOW(cudaEventElapsedTime(&time, start, start));
  std::printf("none between an event and itself: %s\n", yesNo(time == 0));
  SHOW(cudaEventElapsedTime(&time, start, untimed));
  SHOW(cudaEventElapsedTime(&time, never, end));
  SHOW(cudaStreamWaitEvent(stream, never, 0));
  SHOW(cudaEventDestroy(start));
  SHOW(cudaEventDestroy(end));
  SHOW(cudaEventDestroy(untimed));
  SHOW(cudaEventDestroy(never));
  SHOW(cudaStreamDestroy(stream));
}
