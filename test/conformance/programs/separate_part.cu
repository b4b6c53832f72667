// The other file of separate.cu.
#include <cuda_runtime.h>

extern __device__ int offset;
__device__ int calls;
__constant__ int weights[4] = {1, 10, 100, 1000};

__device__ __noinline__ int scale(int x) {
  atomicAdd(&calls, 1);
  return 3 * x + offset;
}

static __global__ void hidden(int* out) { *out = scale(7) + weights[2]; }

int fromOtherFile() {
  int *d = nullptr, out = 0;
  cudaMalloc(&d, sizeof out);
  hidden<<<1, 1>>>(d);
  cudaMemcpy(&out, d, sizeof out, cudaMemcpyDeviceToHost);
  cudaFree(d);
  return out;
}
