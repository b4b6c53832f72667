// Compiled by fatbin.test.ts with all options of nvcc for packing an image.
__device__ __noinline__ float twist(float x) { return x * 0.5f + 3; }

extern "C" __global__ void first(float* x, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = twist(x[i]);
}

extern "C" __global__ void second(const double* x, double* y) {
  y[threadIdx.x] = x[blockIdx.x] + threadIdx.x;
}
