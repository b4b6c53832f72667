// The block that finishes last sums what all blocks wrote: fences and an atomic counter.
// conformance:
#include "show.h"

__device__ unsigned finished;

__global__ void sum(const float* x, int n, volatile float* parts, float* total) {
  __shared__ bool last;
  __shared__ float part[256];
  float mine = 0;
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int width = 128; width > 0; width /= 2) {
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = part[0];
    __threadfence();
    last = atomicInc(&finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!last || threadIdx.x != 0) return;
  float sum = 0;
  for (int i = 0; i < gridDim.x; ++i) sum += parts[i];
  *total = sum;
}

int main() {
  constexpr int n = 100000, blocks = 50;
  static float x[n];
  double expected = 0;
  for (int i = 0; i < n; ++i) x[i] = i % 64, expected += x[i];
  float *d = nullptr, *parts = nullptr, *total = nullptr, result = 0;
  SHOW(cudaMalloc(&d, sizeof x));
  SHOW(cudaMalloc(&parts, blocks * sizeof(float)));
  SHOW(cudaMalloc(&total, sizeof(float)));
  SHOW(cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice));
  for (int round = 0; round < 3; ++round) {
    sum<<<blocks, 256>>>(d, n, parts, total);
    SHOW(cudaMemcpy(&result, total, sizeof result, cudaMemcpyDeviceToHost));
    std::printf("%.0f, expected %.0f\n", result, expected);
  }
}
