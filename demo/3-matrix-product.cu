// A tiled matrix product in shared memory, timed by events and compared with the CPU's result.
#include <cmath>
#include <cstdio>
#include <vector>

#include "check.h"

constexpr int kTile = 16;
constexpr int kSize = 256;  // a multiple of kTile

__global__ void multiply(const float* a, const float* b, float* product) {
  __shared__ float tileA[kTile][kTile];
  __shared__ float tileB[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y;
  const int column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0.0f;
  for (int tile = 0; tile < kSize; tile += kTile) {
    tileA[threadIdx.y][threadIdx.x] = a[row * kSize + tile + threadIdx.x];
    tileB[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * kSize + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += tileA[threadIdx.y][k] * tileB[k][threadIdx.x];
    __syncthreads();
  }
  product[row * kSize + column] = sum;
}

static double productOnCpu(const std::vector<float>& a, const std::vector<float>& b, int row,
                           int column) {
  double sum = 0.0;
  for (int k = 0; k < kSize; ++k)
    sum += static_cast<double>(a[row * kSize + k]) * b[k * kSize + column];
  return sum;
}

int main() {
  std::vector<float> a(kSize * kSize), b(kSize * kSize), product(kSize * kSize);
  for (int i = 0; i < kSize * kSize; ++i) {
    a[i] = static_cast<float>(i % 17) / 17.0f;
    b[i] = static_cast<float>(i % 13) / 13.0f;
  }
  const size_t bytes = product.size() * sizeof(float);
  float *deviceA, *deviceB, *deviceProduct;
  CHECK(cudaMalloc(&deviceA, bytes));
  CHECK(cudaMalloc(&deviceB, bytes));
  CHECK(cudaMalloc(&deviceProduct, bytes));
  CHECK(cudaMemcpy(deviceA, a.data(), bytes, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(deviceB, b.data(), bytes, cudaMemcpyHostToDevice));

  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  CHECK(cudaEventRecord(begin));
  multiply<<<dim3(kSize / kTile, kSize / kTile), dim3(kTile, kTile)>>>(deviceA, deviceB,
                                                                       deviceProduct);
  CHECK(cudaEventRecord(end));
  CHECK(cudaEventSynchronize(end));
  float milliseconds = 0.0f;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CHECK(cudaMemcpy(product.data(), deviceProduct, bytes, cudaMemcpyDeviceToHost));

  double worst = 0.0;
  for (int row = 0; row < kSize; row += 7) {
    for (int column = 0; column < kSize; ++column) {
      const double expected = productOnCpu(a, b, row, column);
      worst = std::fmax(worst, std::fabs(product[row * kSize + column] - expected) / expected);
    }
  }
  const double operations = 2.0 * kSize * kSize * kSize;
  std::printf("%d x %d matrices in %.3f ms, %.2f GFLOP/s; largest error beside the CPU: %.1e\n",
              kSize, kSize, milliseconds, operations / milliseconds / 1e6, worst);
  CHECK(cudaFree(deviceA));
  CHECK(cudaFree(deviceB));
  CHECK(cudaFree(deviceProduct));
  return worst < 1e-5 ? 0 : 1;
}
