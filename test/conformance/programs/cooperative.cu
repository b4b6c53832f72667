// A grid that synchronizes with itself, launched cooperatively; groups of threads; a grid too large for that.
// conformance:
#include <cooperative_groups.h>

#include "show.h"

namespace groups = cooperative_groups;

__global__ void neighbours(int* a, int* b, int rounds) {
  groups::grid_group grid = groups::this_grid();
  const int i = grid.thread_rank(), n = grid.size();
  for (int round = 0; round < rounds; ++round) {
    b[i] = a[(i + 1) % n] + round;
    grid.sync();
    a[i] = b[(i + n - 1) % n] * 2;
    grid.sync();
  }
}

__global__ void tiles(int* out) {
  groups::thread_block block = groups::this_thread_block();
  groups::thread_block_tile<8> tile = groups::tiled_partition<8>(block);
  int value = block.thread_rank();
  for (int width = tile.size() / 2; width > 0; width /= 2) value += tile.shfl_down(value, width);
  if (tile.thread_rank() == 0) out[block.thread_rank() / 8] = value;
  block.sync();
}

int main() {
  int *a = nullptr, *b = nullptr, rounds = 3, host[12 * 64];
  for (int i = 0; i < 12 * 64; ++i) host[i] = i % 13;
  SHOW(cudaMalloc(&a, sizeof host));
  SHOW(cudaMalloc(&b, sizeof host));
  SHOW(cudaMemcpy(a, host, sizeof host, cudaMemcpyHostToDevice));
  void* arguments[] = {&a, &b, &rounds};
  SHOW(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(neighbours), dim3(12), dim3(64), arguments, 0, nullptr));
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaMemcpy(host, a, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("%08x %d %d\n", digest(host, sizeof host), host[0], host[700]);
  SHOW(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(neighbours), dim3(1000000), dim3(64), arguments, 0, nullptr));
  SHOW(cudaGetLastError());
  tiles<<<1, 64>>>(a);
  showLaunch("tiles");
  SHOW(cudaMemcpy(host, a, 32, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 8; ++i) std::printf("%d ", host[i]);
  std::printf("\n");
}
