// Copies from global to shared memory in the background: cuda::pipeline with several stages, cooperative_groups::memcpy_async, the intrinsics.
// conformance: flags=-arch=sm_80 judges=itself
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cuda/pipeline>
#include <vector>

#include "expect.h"

#pragma nv_diag_suppress 20054  // the state in shared memory begins without a value

namespace cg = cooperative_groups;
constexpr int kThreads = 128, kTiles = 9, kStages = 3;

__device__ int doubled(const int* tile) { return 2 * tile[threadIdx.x] + tile[(threadIdx.x + 1) % kThreads]; }

__global__ void staged(const int* in, int* out) {
  __shared__ int tiles[kStages][kThreads];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  for (int ahead = 0, tile = 0; tile < kTiles; ++tile) {
    for (; ahead < kTiles && ahead < tile + kStages; ++ahead) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, tiles[ahead % kStages], in + ahead * kThreads, sizeof(int) * kThreads, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    block.sync();
    out[tile * kThreads + threadIdx.x] = doubled(tiles[tile % kStages]);
    block.sync();
    pipeline.consumer_release();
  }
}

__global__ void grouped(const int* in, int* out) {
  __shared__ alignas(16) int tiles[2][kThreads];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, tiles[0], in, sizeof tiles[0]);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (tile + 1 < kTiles) {
      cg::memcpy_async(block, tiles[(tile + 1) % 2], in + (tile + 1) * kThreads, sizeof tiles[0]);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    out[tile * kThreads + threadIdx.x] = doubled(tiles[tile % 2]);
    block.sync();
  }
}

/// 16 bytes by every fourth thread; past the end, zeros.
__global__ void primitive(const int* in, int* out, int count) {
  __shared__ alignas(16) int tile[kThreads];
  for (int first = 0; first < kTiles * kThreads; first += kThreads) {
    if (threadIdx.x % 4 == 0) {
      const int at = first + threadIdx.x, left = max(0, min(4, count - at));
      __pipeline_memcpy_async(tile + threadIdx.x, in + at, 16, 16 - 4 * left);
    }
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[first + threadIdx.x] = doubled(tile);
    __syncthreads();
  }
}

int main() {
  const int count = kThreads * kTiles, some = count - 50;
  std::vector<int> in(count), out(count);
  for (int i = 0; i < count; ++i) in[i] = i * 31 % 1009 + 1;
  int *dIn = nullptr, *dOut = nullptr;
  EXPECT_OK(cudaMalloc(&dIn, count * sizeof(int)));
  EXPECT_OK(cudaMalloc(&dOut, count * sizeof(int)));
  EXPECT_OK(cudaMemcpy(dIn, in.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  for (int kind = 0; kind < 3; ++kind) {
    EXPECT_OK(cudaMemset(dOut, 0, count * sizeof(int)));
    if (kind == 0) staged<<<1, kThreads>>>(dIn, dOut);
    if (kind == 1) grouped<<<1, kThreads>>>(dIn, dOut);
    if (kind == 2) primitive<<<1, kThreads>>>(dIn, dOut, some);
    EXPECT_OK(cudaMemcpy(out.data(), dOut, count * sizeof(int), cudaMemcpyDeviceToHost));
    bool right = true;
    for (int i = 0; i < count; ++i) {
      const auto value = [&](int at) { return kind == 2 && at >= some ? 0 : in[at]; };
      const int next = i / kThreads * kThreads + (i + 1) % kThreads;
      right = right && out[i] == 2 * value(i) + value(next);
    }
    EXPECT(right);
  }
  return verdict();
}
