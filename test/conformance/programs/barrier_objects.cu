// cuda::barrier in shared memory: phases, tokens, parity, dropped threads, completion functions, copies that a barrier counts; split barriers of groups.
// conformance: flags=-arch=sm_80 judges=itself
#include <cooperative_groups.h>

#include <cuda/barrier>
#include <cuda/std/utility>

#include "expect.h"

#pragma nv_diag_suppress 20054  // barriers in shared memory begin without a value

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kThreads = 96;
__device__ int results[8][kThreads];
__device__ int source[kThreads * 4];

__device__ Barrier* prepared(Barrier& barrier, int count) {
  if (threadIdx.x == 0) init(&barrier, count);
  __syncthreads();
  return &barrier;
}

/// Values go round the block, one place a phase.
__global__ void phases() {
  __shared__ Barrier storage;
  __shared__ int values[2][kThreads];
  Barrier& barrier = *prepared(storage, kThreads);
  values[0][threadIdx.x] = threadIdx.x;
  for (int phase = 0; phase < 20; ++phase) {
    Barrier::arrival_token token = barrier.arrive();
    barrier.wait(cuda::std::move(token));
    values[(phase + 1) % 2][threadIdx.x] = values[phase % 2][(threadIdx.x + 1) % kThreads];
  }
  barrier.arrive_and_wait();
  results[0][threadIdx.x] = values[0][threadIdx.x];
}

/// The first warp fills a buffer that the others empty.
__global__ void producer() {
  __shared__ Barrier fullStorage, emptyStorage;
  __shared__ int buffer[32];
  Barrier &full = *prepared(fullStorage, kThreads), &empty = *prepared(emptyStorage, kThreads);
  int sum = 0;
  for (int round = 0; round < 10; ++round) {
    if (threadIdx.x < 32) {
      empty.arrive_and_wait();
      buffer[threadIdx.x] = round * 32 + threadIdx.x;
      (void)full.arrive();
    } else {
      (void)empty.arrive();
      full.arrive_and_wait();
      sum += buffer[threadIdx.x % 32];
    }
  }
  results[1][threadIdx.x] = sum;
}

/// A thread drops out in each phase.
__global__ void dropping() {
  __shared__ Barrier storage;
  __shared__ int left;
  if (threadIdx.x == 0) left = 0;
  Barrier& barrier = *prepared(storage, kThreads);
  for (int phase = 0; phase < int(threadIdx.x % 8); ++phase) barrier.arrive_and_wait();
  atomicAdd(&left, 1);
  barrier.arrive_and_drop();
  __syncthreads();
  results[2][threadIdx.x] = left;
}

__global__ void parity() {
  __shared__ Barrier storage;
  Barrier& barrier = *prepared(storage, kThreads);
  int passed = 0;
  for (int phase = 0; phase < 6; ++phase) {
    (void)barrier.arrive();
    barrier.wait_parity(phase % 2 != 0);
    ++passed;
  }
  results[3][threadIdx.x] = passed;
}

__global__ void copying() {
  __shared__ Barrier storage;
  __shared__ alignas(16) int tile[kThreads * 4];
  Barrier& barrier = *prepared(storage, kThreads);
  cuda::memcpy_async(cg::this_thread_block(), tile, source, cuda::aligned_size_t<16>(sizeof tile), barrier);
  barrier.arrive_and_wait();
  results[4][threadIdx.x] = tile[threadIdx.x] + tile[4 * kThreads - 1 - threadIdx.x];
  __syncthreads();
  cuda::memcpy_async(tile + threadIdx.x * 4, source + (kThreads - 1 - threadIdx.x) * 4, cuda::aligned_size_t<16>(16), barrier);
  barrier.arrive_and_wait();
  results[5][threadIdx.x] = tile[(threadIdx.x + 1) % kThreads * 4];
}

__global__ void split() {
  __shared__ int values[kThreads];
  const auto block = cg::this_thread_block();
  values[threadIdx.x] = threadIdx.x * 3;
  auto token = block.barrier_arrive();
  int own = threadIdx.x * threadIdx.x;
  block.barrier_wait(cuda::std::move(token));
  results[6][threadIdx.x] = own + values[kThreads - 1 - threadIdx.x];
}

/// A barrier in global memory, which is no mbarrier.
__device__ cuda::barrier<cuda::thread_scope_device> everywhere;
__global__ void prepare() { init(&everywhere, 2 * kThreads); }
__global__ void between() {
  if (blockIdx.x == 0) source[threadIdx.x] = threadIdx.x + 7;
  everywhere.arrive_and_wait();
  if (blockIdx.x == 1) results[7][threadIdx.x] = source[kThreads - 1 - threadIdx.x];
}

int main() {
  int host[kThreads * 4], got[8][kThreads];
  for (int i = 0; i < kThreads * 4; ++i) host[i] = i * 5;
  EXPECT_OK(cudaMemcpyToSymbol(source, host, sizeof host));
  phases<<<1, kThreads>>>();
  producer<<<1, kThreads>>>();
  dropping<<<1, kThreads>>>();
  parity<<<1, kThreads>>>();
  copying<<<1, kThreads>>>();
  split<<<1, kThreads>>>();
  prepare<<<1, 1>>>();
  EXPECT_OK(cudaDeviceSynchronize());
  void* none[] = {nullptr};
  EXPECT_OK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(between), dim3(2), dim3(kThreads), none, 0, nullptr));
  EXPECT_OK(cudaMemcpyFromSymbol(got, results, sizeof got));
  for (int i = 0; i < kThreads; ++i) {
    EXPECT(got[0][i] == (i + 20) % kThreads);
    EXPECT(got[1][i] == (i < 32 ? 0 : 32 * 45 + 10 * (i % 32)));
    EXPECT(got[2][i] == kThreads);
    EXPECT(got[3][i] == 6);
    EXPECT(got[4][i] == 5 * (4 * kThreads - 1));
    EXPECT(got[5][i] == 20 * (kThreads - 1 - (i + 1) % kThreads));
    EXPECT(got[6][i] == i * i + 3 * (kThreads - 1 - i));
    EXPECT(got[7][i] == kThreads - 1 - i + 7);
  }
  return verdict();
}
