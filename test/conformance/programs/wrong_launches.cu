// Launches that cannot be: the launch itself says why, and the next one works.
// conformance:
#include "show.h"

__global__ void kernel(int* out) {
  extern __shared__ int shared[];
  shared[0] = 7;
  if (out) *out = shared[0] + blockDim.x;
}
__global__ void __launch_bounds__(128) bounded(int* out) { *out = 1; }

static void attempt(const char* what, dim3 grid, dim3 block, std::size_t shared) {
  kernel<<<grid, block, shared>>>(nullptr);
  showLaunch(what);
}

int main() {
  int *d = nullptr, x = 0;
  SHOW(cudaMalloc(&d, sizeof x));
  attempt("fine", 1, 32, 4);
  attempt("1025 threads", 1, 1025, 4);
  attempt("32 x 33 threads", 1, dim3(32, 33), 4);
  attempt("no thread", 1, 0, 4);
  attempt("no block", 0, 32, 4);
  attempt("no block in y", dim3(1, 0), 32, 4);
  attempt("65 in z", 1, dim3(1, 1, 65), 4);
  attempt("65536 blocks in y", dim3(1, 65536), 32, 4);
  attempt("65536 blocks in z", dim3(1, 1, 65536), 32, 4);
  attempt("1024 in x", 1, 1024, 4);
  attempt("48 KiB of shared memory", 1, 32, 48 << 10);
  attempt("48 KiB and 4 bytes", 1, 32, (48 << 10) + 4);
  SHOW(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  attempt("100 KiB after asking", 1, 32, 100 << 10);
  attempt("more than asked", 1, 32, 101 << 10);
  SHOW(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
  SHOW(cudaGetLastError());
  bounded<<<1, 129>>>(d);
  showLaunch("129 threads where 128 are allowed");
  SHOW(cudaLaunchKernel(static_cast<const void*>(nullptr), dim3(1), dim3(1), nullptr, 0, nullptr));
  SHOW(cudaGetLastError());
  int notAKernel = 0;
  SHOW(cudaLaunchKernel(&notAKernel, dim3(1), dim3(1), nullptr, 0, nullptr));
  SHOW(cudaGetLastError());
  kernel<<<1, 32, 4>>>(d);
  showLaunch("fine again");
  SHOW(cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost));
  std::printf("x = %d\n", x);
}
