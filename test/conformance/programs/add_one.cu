// x[i] += 1 on doubles, with the result of every call.
// conformance:
#include "show.h"

__global__ void addOne(double* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}

int main() {
  constexpr int n = 1000;
  double x[n];
  for (int i = 0; i < n; ++i) x[i] = i * 0.5 - 100;
  double* d = nullptr;
  int count = 0, device = -1;
  SHOW(cudaGetDeviceCount(&count));
  std::printf("at least one device: %s\n", yesNo(count >= 1));
  SHOW(cudaSetDevice(0));
  SHOW(cudaGetDevice(&device));
  std::printf("device %d\n", device);
  SHOW(cudaMalloc(&d, sizeof x));
  SHOW(cudaMemcpy(d, x, sizeof x, cudaMemcpyHostToDevice));
  for (int round = 0; round < 3; ++round) {
    addOne<<<(n + 255) / 256, 256>>>(d, n);
    SHOW(cudaGetLastError());
  }
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaMemcpy(x, d, sizeof x, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; i += 111) std::printf("x[%d] = %.2f\n", i, x[i]);
  SHOW(cudaFree(d));
  SHOW(cudaDeviceReset());
}
