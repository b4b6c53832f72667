// The sum of an array: each block adds its part in shared memory and says what it found.
// conformance: unordered=block
#include "show.h"

__global__ void sum(const int* x, int n, int* parts) {
  __shared__ int part[128];
  int mine = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += x[i];
  part[threadIdx.x] = mine;
  __syncthreads();
  for (int width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) part[threadIdx.x] += part[threadIdx.x + width];
    __syncthreads();
  }
  if (threadIdx.x != 0) return;
  parts[blockIdx.x] = part[0];
  printf("block %d of %d: %d\n", blockIdx.x, gridDim.x, part[0]);
}

int main() {
  constexpr int n = 10007, blocks = 6;
  static int x[n];
  for (int i = 0; i < n; ++i) x[i] = i % 100 - 30;
  int *input = nullptr, *output = nullptr, parts[blocks] = {};
  SHOW(cudaMalloc(&input, sizeof x));
  SHOW(cudaMalloc(&output, sizeof parts));
  SHOW(cudaMemcpy(input, x, sizeof x, cudaMemcpyHostToDevice));
  std::printf("before the kernel\n");
  sum<<<blocks, 128>>>(input, n, output);
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaMemcpy(parts, output, sizeof parts, cudaMemcpyDeviceToHost));
  int total = 0, expected = 0;
  for (int part : parts) total += part;
  for (int value : x) expected += value;
  std::printf("sum %d, expected %d\n", total, expected);
  SHOW(cudaFree(input));
  SHOW(cudaFree(output));
}
