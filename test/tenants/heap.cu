// Prints how many bytes of the allocation are used after a kernel has called malloc, and whether
// the kernel got its 16 bytes.
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

__global__ void reach(int* got) { *got = malloc(16) != nullptr; }

void check(cudaError_t result, const char* what) {
  if (result != cudaSuccess)
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorName(result)), std::exit(1);
}

int main() {
  int* got = nullptr;
  check(cudaMallocHost(&got, sizeof *got), "cudaMallocHost");
  reach<<<1, 1>>>(got);
  check(cudaGetLastError(), "launch");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::printf("%zu %d\n", total - free, *got);
}
