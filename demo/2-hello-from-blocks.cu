// Each block of a grid prints a line from the GPU, with the result of a block-wide reduction.
#include <cstdio>

#include "check.h"

__global__ void hello() {
  __shared__ int squares[32];
  const unsigned thread = threadIdx.x;
  squares[thread] = static_cast<int>(thread * thread) + static_cast<int>(blockIdx.x);
  __syncthreads();
  for (unsigned stride = blockDim.x / 2; stride > 0; stride /= 2) {
    if (thread < stride) squares[thread] += squares[thread + stride];
    __syncthreads();
  }
  if (thread == 0)
    printf("block %u of %u: %u threads, the sum of their numbers is %d\n", blockIdx.x, gridDim.x,
           blockDim.x, squares[0]);
}

int main() {
  std::printf("from the CPU: starting 4 blocks (they may speak in any order)\n");
  hello<<<4, 32>>>();
  CHECK(cudaDeviceSynchronize());
  std::printf("from the CPU: all blocks have spoken\n");
  return 0;
}
