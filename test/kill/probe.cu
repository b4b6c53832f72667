// Runs after the others: checks that a kernel runs, then prints the free memory.
#include <cuda_runtime.h>

#include <cstdio>

__global__ void answer(int* x) { *x = 42; }

int main() {
  int *d = nullptr, x = 0;
  std::size_t available = 0, total = 0;
  if (cudaMemGetInfo(&available, &total) != cudaSuccess || cudaMalloc(&d, sizeof x) != cudaSuccess)
    return 1;
  answer<<<1, 1>>>(d);
  if (cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost) != cudaSuccess || x != 42) return 2;
  std::printf("%zu\n", available);
}
