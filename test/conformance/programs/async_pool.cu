// Stream-ordered allocation from the default pool.
// conformance:
#include "show.h"

__global__ void fill(int* x, int n, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = value + i;
}

int main() {
  constexpr int n = 100000;
  cudaStream_t stream = nullptr;
  cudaMemPool_t pool = nullptr;
  static int host[n];
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaDeviceGetDefaultMemPool(&pool, 0));
  std::uint64_t threshold = 1;
  SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  std::printf("threshold %llu\n", static_cast<unsigned long long>(threshold));
  threshold = 64 << 20;
  SHOW(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  threshold = 0;
  SHOW(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  std::printf("threshold %llu\n", static_cast<unsigned long long>(threshold));
  for (int round = 0; round < 3; ++round) {
    int *a = nullptr, *b = nullptr;
    SHOW(cudaMallocAsync(&a, sizeof host, stream));
    SHOW(cudaMallocAsync(&b, 1000, stream));
    std::printf("apart: %s\n", yesNo(a != b));
    fill<<<(n + 255) / 256, 256, 0, stream>>>(a, n, round * 1000);
    fill<<<1, 256, 0, stream>>>(b, 250, round);
    SHOW(cudaMemcpyAsync(host, a, sizeof host, cudaMemcpyDeviceToHost, stream));
    SHOW(cudaFreeAsync(a, stream));
    SHOW(cudaMemcpyAsync(host + 10, b, 1000, cudaMemcpyDeviceToHost, stream));
    SHOW(cudaFreeAsync(b, stream));
    SHOW(cudaStreamSynchronize(stream));
    std::printf("%08x\n", digest(host, sizeof host));
  }
  int* late = nullptr;
  SHOW(cudaMallocAsync(&late, 4096, stream));
  SHOW(cudaStreamSynchronize(stream));
  SHOW(cudaFree(late));
  SHOW(cudaMallocAsync(&late, 0, stream));
  SHOW(cudaFreeAsync(nullptr, stream));
  SHOW(cudaMemPoolTrimTo(pool, 0));
  SHOW(cudaStreamDestroy(stream));
}
