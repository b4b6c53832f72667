// Within a warp: shuffles, votes, matches and reductions, with full and partial masks.
// conformance: flags=-arch=sm_90
#include "show.h"

constexpr int kRows = 22;

__global__ void warp(unsigned (*out)[32]) {
  const unsigned lane = threadIdx.x, full = 0xffffffff;
  int row = 0;
  auto put = [&](unsigned value) { out[row++][lane] = value; };
  put(__shfl_sync(full, lane * 10, 5));
  put(__shfl_sync(full, lane * 10, lane + 3));
  put(__shfl_sync(full, lane * 10, 1, 8));
  put(__shfl_up_sync(full, lane, 3));
  put(__shfl_up_sync(full, lane, 3, 16));
  put(__shfl_down_sync(full, lane, 4));
  put(__shfl_down_sync(full, lane, 4, 8));
  put(__shfl_xor_sync(full, lane, 7));
  put(unsigned(__shfl_xor_sync(full, (static_cast<unsigned long long>(lane) << 32) + lane, 1) >> 32));
  put(unsigned(__shfl_sync(full, double(lane) * 0.5, 31 - lane) * 10));
  put(__ballot_sync(full, lane % 3 == 0));
  put(__any_sync(full, lane == 31));
  put(__all_sync(full, lane < 31));
  put(__match_any_sync(full, lane % 5));
  int same = 7;
  put(__match_all_sync(full, lane / 32, &same) + same);
  put(__match_all_sync(full, lane / 16, &same) + same);
  put(__reduce_add_sync(full, lane));
  put(__reduce_max_sync(full, int(lane) - 40));
  put(__reduce_xor_sync(full, lane * lane));
  put(__reduce_min_sync(full, 100 - lane));
  unsigned value = 0;
  if (lane < 13) {
    const unsigned part = 0x1fff;
    value = __ballot_sync(part, lane & 1) + __shfl_sync(part, lane, 12) * 65536;
  } else {
    value = __reduce_or_sync(~0x1fffu, lane);
  }
  put(value);
  unsigned below;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(below));
  put(below);
}

int main() {
  unsigned(*d)[32] = nullptr, out[kRows][32];
  SHOW(cudaMalloc(&d, sizeof out));
  warp<<<1, 32>>>(d);
  showLaunch("warp");
  SHOW(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int row = 0; row < kRows; ++row) {
    std::printf("%2d:", row);
    for (unsigned value : out[row]) std::printf(" %x", value);
    std::printf("\n");
  }
}
