// The classic, built in every way that changes how its image reaches the driver.
// conformance:
// conformance: build=shared flags="-cudart shared"
// conformance: build=lz4 flags=--compress-mode=speed
// conformance: build=zstd flags=--compress-mode=size
// conformance: build=plain flags=--compress-mode=none
// conformance: build=sm_90 flags=-arch=sm_90
// conformance: build=many flags="-gencode arch=compute_75,code=compute_75 -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=compute_90"
// conformance: build=debug flags=-G
#include "show.h"

__global__ void add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

int main() {
  constexpr int n = 50000;
  static float a[n], b[n], c[n];
  for (int i = 0; i < n; ++i) a[i] = i * 0.25f, b[i] = 1000 - i;
  float *x = nullptr, *y = nullptr, *z = nullptr;
  SHOW(cudaMalloc(&x, sizeof a));
  SHOW(cudaMalloc(&y, sizeof b));
  SHOW(cudaMalloc(&z, sizeof c));
  SHOW(cudaMemcpy(x, a, sizeof a, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(y, b, sizeof b, cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(x, y, z, n);
  showLaunch("add");
  SHOW(cudaMemcpy(c, z, sizeof c, cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < n; ++i) wrong += c[i] != a[i] + b[i];
  std::printf("%d of %d wrong, c[777] = %g\n", wrong, n, c[777]);
  SHOW(cudaFree(x));
  SHOW(cudaFree(y));
  SHOW(cudaFree(z));
}
