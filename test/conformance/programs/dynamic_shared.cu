// Dynamic shared memory: size given at launch, several arrays in it, beside a static one, and more than 48 KiB.
// conformance:
#include "show.h"

extern __shared__ double dynamic[];

__global__ void reverse(int* x, double* y, int n) {
  __shared__ int last;
  double* doubles = dynamic;
  int* ints = reinterpret_cast<int*>(dynamic + n);
  if (threadIdx.x == 0) last = n - 1;
  for (int i = threadIdx.x; i < n; i += blockDim.x) doubles[i] = y[i], ints[i] = x[i];
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[i] = doubles[last - i], x[i] = ints[last - i];
}

__global__ void size(unsigned* out) {
  unsigned dynamicSize, totalSize;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamicSize));
  asm("mov.u32 %0, %%total_smem_size;" : "=r"(totalSize));
  dynamic[0] = 1;
  out[0] = dynamicSize, out[1] = totalSize >= dynamicSize;
}

static void show(int n, int* dx, double* dy) {
  static int x[8000];
  static double y[8000];
  for (int i = 0; i < n; ++i) x[i] = i, y[i] = i / 4.0;
  cudaMemcpy(dx, x, n * sizeof *x, cudaMemcpyHostToDevice);
  cudaMemcpy(dy, y, n * sizeof *y, cudaMemcpyHostToDevice);
  reverse<<<1, 128, n*(sizeof *x + sizeof *y)>>>(dx, dy, n);
  std::printf("%d: %s; ", n, resultName(cudaGetLastError()));
  cudaMemcpy(x, dx, n * sizeof *x, cudaMemcpyDeviceToHost);
  std::printf("%s; ", resultName(cudaMemcpy(y, dy, n * sizeof *y, cudaMemcpyDeviceToHost)));
  std::printf("%d %g %d %g\n", x[0], y[0], x[n - 1], y[n - 1]);
}

int main() {
  int* x = nullptr;
  double* y = nullptr;
  unsigned out[2] = {};
  cudaFuncAttributes attributes = {};
  SHOW(cudaMalloc(&x, 32000));
  SHOW(cudaMalloc(&y, 64000));
  show(10, x, y);
  show(4000, x, y);
  SHOW(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 96000));
  show(8000, x, y);
  SHOW(cudaFuncGetAttributes(&attributes, reverse));
  std::printf("static at least an int: %s, dynamic at most %d\n", yesNo(attributes.sharedSizeBytes >= sizeof(int)),
              attributes.maxDynamicSharedSizeBytes);
  size<<<1, 1, 1234 * 8>>>(reinterpret_cast<unsigned*>(x));
  SHOW(cudaMemcpy(out, x, sizeof out, cudaMemcpyDeviceToHost));
  std::printf("dynamic %u, part of the total: %s\n", out[0], yesNo(out[1]));
}
