// A matrix product by tiles, whose float sums are exact, and a longer chain of launches that depend on each other.
// conformance:
#include "show.h"

constexpr int n = 96, tile = 16;

__global__ void product(const float* a, const float* b, float* c) {
  __shared__ float x[tile][tile], y[tile][tile];
  const int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int step = 0; step < n; step += tile) {
    x[threadIdx.y][threadIdx.x] = a[row * n + step + threadIdx.x];
    y[threadIdx.y][threadIdx.x] = b[(step + threadIdx.y) * n + column];
    __syncthreads();
    for (int k = 0; k < tile; ++k) sum += x[threadIdx.y][k] * y[k][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

__global__ void modulo(float* c) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  c[i] = fmodf(c[i], 11);
}

int main() {
  static float host[n * n];
  float* m[3] = {};
  for (float*& one : m) SHOW(cudaMalloc(&one, sizeof host));
  for (int i = 0; i < n * n; ++i) host[i] = i * 7 % 11;
  SHOW(cudaMemcpy(m[0], host, sizeof host, cudaMemcpyHostToDevice));
  for (int i = 0; i < n * n; ++i) host[i] = (i % n == i / n) + i % 5;
  SHOW(cudaMemcpy(m[1], host, sizeof host, cudaMemcpyHostToDevice));
  for (int round = 0; round < 30; ++round) {
    product<<<dim3(n / tile, n / tile), dim3(tile, tile)>>>(m[round % 2 * 2], m[1], m[2 - round % 2 * 2]);
    modulo<<<n, n>>>(m[2 - round % 2 * 2]);
  }
  SHOW(cudaGetLastError());
  SHOW(cudaMemcpy(host, m[0], sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%08x %g %g %g\n", digest(host, sizeof host), host[0], host[777], host[n * n - 1]);
}
