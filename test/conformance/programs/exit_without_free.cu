// A program that frees nothing and ends in the middle of main with a status of its own.
// conformance:
#include <cstdlib>

#include "show.h"

__global__ void fill(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x; }

int main() {
  for (int i = 0; i < 3; ++i) {
    int *d = nullptr, *h = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    SHOW(cudaMalloc(&d, 1 << 20));
    SHOW(cudaMallocHost(&h, 1 << 20));
    SHOW(cudaStreamCreate(&stream));
    SHOW(cudaEventCreate(&event));
    fill<<<1024, 256, 0, stream>>>(d);
    SHOW(cudaMemcpyAsync(h, d, 1 << 20, cudaMemcpyDeviceToHost, stream));
    SHOW(cudaEventRecord(event, stream));
  }
  std::printf("leaving\n");
  std::exit(7);
}
