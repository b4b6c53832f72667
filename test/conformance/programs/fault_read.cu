// A read outside any allocation, by one thread of many, is the same error as a write.
// conformance:
#include "show.h"

__global__ void read(const int* x, std::size_t far, int* out) { *out = x[threadIdx.x == 17 ? far : 0]; }

int main() {
  int *x = nullptr, *out = nullptr;
  SHOW(cudaMalloc(&x, 1 << 20));
  SHOW(cudaMalloc(&out, 4));
  SHOW(cudaMemset(x, 0, 1 << 20));
  read<<<2, 32>>>(x, 5, out);
  showLaunch("inside");
  read<<<2, 32>>>(x, std::size_t{1} << 44, out);
  showLaunch("outside");
  SHOW(cudaFree(x));
}
