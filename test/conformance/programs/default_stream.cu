// The legacy default stream waits for blocking streams and they for it; a non-blocking stream does neither.
// A host function holds the work back while we look.
// conformance:
#include <atomic>
#include <thread>

#include "show.h"

static std::atomic<bool> open{false};

static void CUDART_CB waitUntilOpen(void*) {
  while (!open) std::this_thread::yield();
}

__global__ void add(int* x, int value) { *x = *x * 10 + value; }

int main() {
  int *x = nullptr, *y = nullptr, back = 0;
  cudaStream_t blocking = nullptr, other = nullptr, free = nullptr;
  SHOW(cudaMalloc(&x, 4));
  SHOW(cudaMalloc(&y, 4));
  SHOW(cudaMemset(x, 0, 4));
  SHOW(cudaMemset(y, 0, 4));
  SHOW(cudaStreamCreate(&blocking));
  SHOW(cudaStreamCreate(&other));
  SHOW(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
  add<<<1, 1>>>(y, 0);
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaLaunchHostFunc(blocking, waitUntilOpen, nullptr));
  add<<<1, 1, 0, blocking>>>(x, 1);
  add<<<1, 1>>>(x, 2);
  add<<<1, 1, 0, other>>>(x, 3);
  add<<<1, 1, 0, free>>>(y, 7);
  SHOW(cudaStreamSynchronize(free));
  SHOW(cudaStreamQuery(blocking));
  SHOW(cudaStreamQuery(other));
  SHOW(cudaMemcpyAsync(&back, y, 4, cudaMemcpyDeviceToHost, free));
  SHOW(cudaStreamSynchronize(free));
  std::printf("y %d\n", back);
  open = true;
  SHOW(cudaMemcpy(&back, x, 4, cudaMemcpyDeviceToHost));
  std::printf("x %d\n", back);
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaMemcpy(&back, x, 4, cudaMemcpyDeviceToHost));
  std::printf("x %d\n", back);
}
