// Bulk reductions: cp.reduce.async.bulk from shared memory into global memory by all blocks, and
// into the shared memory of another block of the cluster.
// conformance: flags=-arch=sm_90 judges=itself
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <vector>

#include "expect.h"

namespace cg = cooperative_groups;
constexpr int kThreads = 128, kBlocks = 24, kCluster = 4;

__device__ unsigned shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Operand of a block for an element.
template <class T>
__host__ __device__ T operandOf(int block, int element) {
  return T((block * 5 + element * 3) % 17);
}

/// Each block reduces its row into the same row of global memory.
#define REDUCTION(name, T, operation)                                                          \
  __global__ void name(T* out) {                                                               \
    __shared__ alignas(16) T row[kThreads];                                                    \
    row[threadIdx.x] = operandOf<T>(blockIdx.x, threadIdx.x);                                  \
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");                               \
    __syncthreads();                                                                           \
    if (threadIdx.x > 0) return;                                                               \
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." operation               \
                 " [%0], [%1], %2;" ::"l"(out),                                                \
                 "r"(shared(row)), "r"(int(sizeof row))                                        \
                 : "memory");                                                                  \
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");      \
  }
REDUCTION(addWords, unsigned, "add.u32")
REDUCTION(addDoubleWords, unsigned long long, "add.u64")
REDUCTION(addFloats, float, "add.f32")
REDUCTION(addDoubles, double, "add.f64")
REDUCTION(addHalves, __half, "add.noftz.f16")
REDUCTION(addBrains, __nv_bfloat16, "add.noftz.bf16")
REDUCTION(leastWord, int, "min.s32")
REDUCTION(greatestWord, unsigned, "max.u32")
REDUCTION(greatestHalf, __half, "max.f16")
REDUCTION(leastDoubleWord, long long, "min.s64")
REDUCTION(eitherBit, unsigned, "or.b32")
REDUCTION(bothBits, unsigned long long, "and.b64")
REDUCTION(oddBits, unsigned, "xor.b32")

/// The sums of small integers are exact in each type, in any order.
template <class T, class Combine>
void reduced(const char* name, void (*kernel)(T*), double first, Combine combine) {
  std::vector<T> out(kThreads, T(first));
  T* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, kThreads * sizeof(T)));
  EXPECT_OK(cudaMemcpy(device, out.data(), kThreads * sizeof(T), cudaMemcpyHostToDevice));
  kernel<<<kBlocks, kThreads>>>(device);
  EXPECT_OK(cudaMemcpy(out.data(), device, kThreads * sizeof(T), cudaMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < kThreads; ++i) {
    double expected = first;
    for (int block = 0; block < kBlocks; ++block)
      expected = combine(expected, double(operandOf<int>(block, i)));
    wrong += float(out[i]) != expected;
  }
  if (wrong > 0) std::printf("%s: %d elements are wrong\n", name, wrong);
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(device));
}

/// Each block adds its row to that of the block behind it.
__global__ __cluster_dims__(kCluster) void sent(int* out) {
  __shared__ alignas(16) int mine[kThreads], sums[kThreads];
  __shared__ alignas(8) unsigned long long arrived;
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned rank = cluster.block_rank(), next = (rank + 1) % kCluster;
  mine[threadIdx.x] = rank * 1000 + threadIdx.x;
  sums[threadIdx.x] = -int(threadIdx.x);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(shared(&arrived)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(shared(&arrived)),
                 "r"(int(sizeof sums))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  asm volatile("fence.proxy.async;" ::: "memory");
  cluster.sync();
  if (threadIdx.x == 0) {
    asm volatile("{ .reg .b32 to, at; mapa.shared::cluster.u32 to, %0, %4;"
                 "mapa.shared::cluster.u32 at, %3, %4;"
                 "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                 ".add.s32 [to], [%1], %2, [at]; }" ::"r"(shared(sums)),
                 "r"(shared(mine)), "r"(int(sizeof mine)), "r"(shared(&arrived)), "r"(next)
                 : "memory");
  }
  asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.shared.b64 p, [%0], 0;"
               "@!p bra AGAIN; }" ::"r"(shared(&arrived))
               : "memory");
  out[rank * kThreads + threadIdx.x] = sums[threadIdx.x];
  cluster.sync();
}

static void inCluster() {
  const int count = kCluster * kThreads;
  std::vector<int> out(count);
  int* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, count * sizeof(int)));
  sent<<<kCluster, kThreads>>>(device);
  EXPECT_OK(cudaMemcpy(out.data(), device, count * sizeof(int), cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < count; ++i)
    right = right && out[i] == (i / kThreads + kCluster - 1) % kCluster * 1000;
  EXPECT(right);
  EXPECT_OK(cudaFree(device));
}

int main() {
  const auto sum = [](double a, double b) { return a + b; };
  const auto least = [](double a, double b) { return std::min(a, b); };
  const auto greatest = [](double a, double b) { return std::max(a, b); };
  reduced("add.u32", addWords, 3, sum);
  reduced("add.u64", addDoubleWords, 3, sum);
  reduced("add.f32", addFloats, 0.5, sum);
  reduced("add.f64", addDoubles, 0.25, sum);
  reduced("add.noftz.f16", addHalves, 3, sum);
  reduced("add.noftz.bf16", addBrains, -200, sum);
  reduced("min.s32", leastWord, 3, least);
  reduced("max.u32", greatestWord, 9, greatest);
  reduced("max.f16", greatestHalf, 9, greatest);
  reduced("min.s64", leastDoubleWord, 3, least);
  reduced("or.b32", eitherBit, 32, [](double a, double b) { return int(a) | int(b); });
  reduced("and.b64", bothBits, 31, [](double a, double b) { return int(a) & int(b); });
  reduced("xor.b32", oddBits, 64, [](double a, double b) { return int(a) ^ int(b); });
  inCluster();
  return verdict();
}
