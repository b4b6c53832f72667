// Bulk copies: cuda::memcpy_async into shared memory, and cp.async.bulk back to global memory and
// to another block of the cluster.
// conformance: flags=-arch=sm_90 judges=itself
#include <cooperative_groups.h>
#include <cuda/barrier>

#include <vector>

#include "expect.h"

namespace cg = cooperative_groups;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kThreads = 128, kBlocks = 4;

__device__ unsigned shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Each block turns its part of the data round.
__global__ void turned(const int* in, int* out) {
  __shared__ alignas(16) int came[kThreads], goes[kThreads];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  const cg::thread_block block = cg::this_thread_block();
  const cuda::aligned_size_t<16> bytes(sizeof came);
  cuda::memcpy_async(block, came, in + blockIdx.x * kThreads, bytes, barrier);
  barrier.arrive_and_wait();
  goes[threadIdx.x] = came[kThreads - 1 - threadIdx.x] + 1;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x > 0) return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   out + blockIdx.x * kThreads),
               "r"(shared(goes)), "r"(int(sizeof goes))
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Each block sends its table to the block behind it.
__global__ __cluster_dims__(kBlocks) void sent(int* out) {
  __shared__ alignas(16) int mine[kThreads], theirs[kThreads];
  __shared__ alignas(8) unsigned long long arrived;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), next = (rank + 1) % kBlocks;
  mine[threadIdx.x] = rank * 1000 + threadIdx.x;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&arrived)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&arrived)),
                 "r"(int(sizeof theirs))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  cluster.sync();
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .b32 to, at; mapa.shared::cluster.u32 to, %0, %4;"
                 "mapa.shared::cluster.u32 at, %3, %4;"
                 "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes "
                 "[to], [%1], %2, [at]; }" ::"r"(shared(theirs)),
                 "r"(shared(mine)), "r"(int(sizeof mine)), "r"(shared(&arrived)), "r"(next)
                 : "memory");
  }
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
               "@!p bra AGAIN; }" ::"r"(shared(&arrived))
               : "memory");
  out[rank * kThreads + threadIdx.x] = theirs[threadIdx.x];
  cluster.sync();
}

int main() {
  const int count = kBlocks * kThreads;
  std::vector<int> in(count), out(count);
  for (int i = 0; i < count; ++i) in[i] = i * 7;
  int *dIn = nullptr, *dOut = nullptr;
  EXPECT_OK(cudaMalloc(&dIn, count * sizeof(int)));
  EXPECT_OK(cudaMalloc(&dOut, count * sizeof(int)));
  EXPECT_OK(cudaMemcpy(dIn, in.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  turned<<<kBlocks, kThreads>>>(dIn, dOut);
  EXPECT_OK(cudaMemcpy(out.data(), dOut, count * sizeof(int), cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < count; ++i)
    right = right && out[i] == in[i / kThreads * kThreads + kThreads - 1 - i % kThreads] + 1;
  EXPECT(right);
  sent<<<kBlocks, kThreads>>>(dOut);
  EXPECT_OK(cudaMemcpy(out.data(), dOut, count * sizeof(int), cudaMemcpyDeviceToHost));
  for (int i = 0; i < count; ++i)
    right = right && out[i] == (i / kThreads + kBlocks - 1) % kBlocks * 1000 + i % kThreads;
  EXPECT(right);
  cudaFree(dIn), cudaFree(dOut);
  return verdict();
}
