// Eight host threads, each with its own default stream: copies and kernels of one thread stay in order, threads do not mix.
// conformance: flags="--default-stream per-thread"
#include <thread>

#include "show.h"

__global__ void step(int* x, int n, int add) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * 3 + add;
}

struct Outcome {
  cudaError_t errors[4];
  unsigned sum;
  int device;
};

static void work(int number, Outcome& outcome) {
  constexpr int n = 3000;
  static int buffers[8][n];
  int *x = buffers[number], *d = nullptr;
  for (int i = 0; i < n; ++i) x[i] = i + number;
  outcome.errors[0] = cudaMalloc(&d, n * sizeof(int));
  cudaMemcpyAsync(d, x, n * sizeof(int), cudaMemcpyHostToDevice, 0);
  for (int round = 0; round < 50; ++round) step<<<(n + 127) / 128, 128>>>(d, n, number + round);
  outcome.errors[1] = cudaGetLastError();
  outcome.errors[2] = cudaMemcpy(x, d, n * sizeof(int), cudaMemcpyDeviceToHost);
  cudaGetDevice(&outcome.device);
  outcome.errors[3] = cudaFree(d);
  outcome.sum = digest(x, n * sizeof(int));
}

int main() {
  Outcome outcomes[8] = {};
  std::thread threads[8];
  for (int i = 0; i < 8; ++i) threads[i] = std::thread(work, i, std::ref(outcomes[i]));
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < 8; ++i) {
    std::printf("thread %d, device %d, digest %08x:", i, outcomes[i].device, outcomes[i].sum);
    for (cudaError_t error : outcomes[i].errors) std::printf(" %s", resultName(error));
    std::printf("\n");
  }
}
