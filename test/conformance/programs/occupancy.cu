// How many blocks fit on a multiprocessor, where threads or shared memory decide it.
// conformance:
#include "show.h"

__global__ void small(int* x) { x[threadIdx.x] = 1; }
__global__ void withShared(int* x) {
  __shared__ int data[6144];
  data[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = data[1023 - threadIdx.x];
}

int main() {
  for (int threads : {32, 64, 128, 256, 512, 1000, 1024}) {
    int blocks = -1, flagged = -1;
    const cudaError_t first = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, threads, 0);
    const cudaError_t second =
        cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&flagged, small, threads, 0, cudaOccupancyDisableCachingOverride);
    std::printf("%d threads: %s %d, %s %d\n", threads, resultName(first), blocks, resultName(second), flagged);
  }
  int blocks = -1, least = 0, best = 0;
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, withShared, 64, 0));
  std::printf("24 KiB each: %d\n", blocks);
  SHOW(cudaFuncSetAttribute(small, cudaFuncAttributeMaxDynamicSharedMemorySize, 120 << 10));
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 64, 120 << 10));
  std::printf("120 KiB each: %d\n", blocks);
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 2000, 0));
  std::printf("2000 threads: %d\n", blocks);
  SHOW(cudaOccupancyMaxPotentialBlockSize(&least, &best, small, 0, 512));
  std::printf("best block %d, grid %d\n", best, least);
  SHOW(cudaOccupancyMaxActiveBlocksPerMultiprocessor(nullptr, small, 64, 0));
  SHOW(cudaGetLastError());
}
