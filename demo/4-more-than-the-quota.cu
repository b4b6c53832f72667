// Allocates memory until its quota is used up. CUDA then returns its usual error, and the program
// continues.
#include <cstdio>
#include <vector>

#include "check.h"

__global__ void fill(int* values, int count, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = value;
}

static void sayFree(const char* when) {
  size_t free = 0, total = 0;
  CHECK(cudaMemGetInfo(&free, &total));
  std::printf("%s: %zu of %zu MiB are free\n", when, free >> 20, total >> 20);
}

int main() {
  constexpr size_t kChunk = size_t{64} << 20;
  constexpr int kEnough = 4096;  // 256 GiB: more than any GPU has
  sayFree("at first");
  std::vector<void*> chunks;
  cudaError_t status = cudaSuccess;
  for (int i = 0; i < kEnough; ++i) {
    void* chunk = nullptr;
    status = cudaMalloc(&chunk, kChunk);
    if (status != cudaSuccess) break;
    chunks.push_back(chunk);
  }
  std::printf("got %zu chunks of 64 MiB, then: %s (%s)\n", chunks.size(), cudaGetErrorName(status),
              cudaGetErrorString(status));
  if (status != cudaErrorMemoryAllocation || chunks.empty()) return 1;
  sayFree("now");
  cudaGetLastError();

  // CUDA loads a kernel at its first launch, and its code needs memory, too.
  CHECK(cudaFree(chunks.back()));
  chunks.pop_back();
  int value = 0;
  fill<<<1, 32>>>(static_cast<int*>(chunks[0]), 32, 42);
  CHECK(cudaGetLastError());
  CHECK(
      cudaMemcpy(&value, static_cast<int*>(chunks[0]) + 31, sizeof(value), cudaMemcpyDeviceToHost));
  std::printf(
      "the program gives one chunk back and goes on: a kernel wrote %d into the first chunk\n",
      value);
  for (void* chunk : chunks) CHECK(cudaFree(chunk));
  sayFree("after giving everything back");
  return value == 42 ? 0 : 1;
}
