// Adds two vectors on the GPU and checks every element of the sum.
#include <cstdio>
#include <vector>

#include "check.h"

__global__ void add(const float* a, const float* b, float* sum, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

int main() {
  constexpr int kCount = 1 << 20;
  std::vector<float> a(kCount), b(kCount), sum(kCount);
  for (int i = 0; i < kCount; ++i) {
    a[i] = 0.5f * i;
    b[i] = 2.0f * i;
  }

  cudaDeviceProp device;
  CHECK(cudaGetDeviceProperties(&device, 0));
  std::printf("GPU: %s, compute capability %d.%d, %zu MiB for this program\n", device.name,
              device.major, device.minor, device.totalGlobalMem >> 20);

  const size_t bytes = kCount * sizeof(float);
  float *deviceA, *deviceB, *deviceSum;
  CHECK(cudaMalloc(&deviceA, bytes));
  CHECK(cudaMalloc(&deviceB, bytes));
  CHECK(cudaMalloc(&deviceSum, bytes));
  CHECK(cudaMemcpy(deviceA, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceB, b.data(), bytes, cudaMemcpyHostToDevice));
  add<<<(kCount + 255) / 256, 256>>>(deviceA, deviceB, deviceSum, kCount);
  CHECK(cudaGetLastError());
  CHECK(cudaMemcpy(sum.data(), deviceSum, bytes, cudaMemcpyDeviceToHost));

  int wrong = 0;
  for (int i = 0; i < kCount; ++i) wrong += sum[i] != a[i] + b[i];
  std::printf("added %d pairs of numbers, %d wrong; the last sum is %.1f\n", kCount, wrong,
              sum[kCount - 1]);
  CHECK(cudaFree(deviceA));
  CHECK(cudaFree(deviceB));
  CHECK(cudaFree(deviceSum));
  return wrong == 0 ? 0 : 1;
}
