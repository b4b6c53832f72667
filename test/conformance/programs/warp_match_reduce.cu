// Groups of lanes with equal keys: match, elect and reduce intrinsics, labeled and binary partitions, reductions of cooperative groups.
// conformance: flags=-arch=sm_90 judges=itself
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include "expect.h"

namespace cg = cooperative_groups;
constexpr int kRows = 14;
__device__ int rows[kRows][32];

__global__ void run() {
  const int lane = threadIdx.x, key = lane % 5;
  int row = 0;
  const auto put = [&](int value) { rows[row++][lane] = value; };
  const unsigned same = __match_any_sync(~0u, key), wide = __match_any_sync(~0u, (1ull << 40) * key + 7);
  put(int(same));
  put(same == wide);
  put(int(__reduce_add_sync(same, unsigned(lane))));
  put(__reduce_min_sync(same, lane - 16));
  put(int(__reduce_or_sync(same, 1u << lane)));
  int all = 0;
  put(int(__match_all_sync(same, key, &all)));
  put(all);
  // One atomic operation for each key, as libraries aggregate them.
  __shared__ int count[5];
  if (lane < 5) count[lane] = 0;
  __syncwarp();
  const int leader = __ffs(int(same)) - 1, rank = __popc(same & ((1u << lane) - 1));
  int base = 0;
  if (lane == leader) base = atomicAdd(count + key, __popc(same));
  base = __shfl_sync(same, base, leader);
  put(base + rank);
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const auto labeled = cg::labeled_partition(warp, key);
  put(cg::reduce(labeled, lane, cg::plus<int>()));
  put(int(labeled.thread_rank()));
  const auto halves = cg::binary_partition(warp, lane % 3 == 0);
  put(cg::reduce(halves, lane, cg::greater<int>()));
  const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  put(cg::inclusive_scan(tile, lane));
  put(cg::reduce(tile, float(lane), cg::less<float>()) == float(lane / 8 * 8));
  int elected = 0;
  asm volatile("{ .reg .pred p; .reg .b32 r; elect.sync r|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(elected));
  put(__popc(__ballot_sync(~0u, elected)));
}

int main() {
  run<<<1, 32>>>();
  int got[kRows][32];
  EXPECT_OK(cudaMemcpyFromSymbol(got, rows, sizeof got));
  for (int lane = 0; lane < 32; ++lane) {
    unsigned same = 0;
    int sum = 0, least = 99, rank = 0, most = 0, scan = 0;
    for (int other = 0; other < 32; ++other) {
      if (other % 5 == lane % 5) {
        same |= 1u << other;
        sum += other;
        least = other - 16 < least ? other - 16 : least;
        rank += other < lane;
      }
      if ((other % 3 == 0) == (lane % 3 == 0)) most = other;
      if (other / 8 == lane / 8 && other <= lane) scan += other;
    }
    const int expected[kRows] = {int(same), 1, sum, least, int(same), int(same), 1, rank, sum, rank, most, scan, 1, 1};
    for (int row = 0; row < kRows; ++row) EXPECT(got[row][lane] == expected[row]);
  }
  return verdict();
}
