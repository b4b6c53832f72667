// Clusters of blocks: their shape as blocks see it, shared memory of the other blocks, barriers, arrivals at another block's mbarrier.
// conformance: flags=-arch=sm_90 judges=itself
#include <cooperative_groups.h>

#include <vector>

#include "expect.h"

namespace cg = cooperative_groups;
constexpr int kThreads = 64;

struct Seen {
  unsigned rank, blocks, x, y, clusterX, clusterY, clustersX, clustersY;
};

/// Each block publishes a table; then each reads that of the block behind it.
__device__ void exchange(Seen* seen, int* out) {
  __shared__ int table[kThreads];
  const cg::cluster_group cluster = cg::this_cluster();
  const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
  table[threadIdx.x] = block * 1000 + threadIdx.x;
  cluster.sync();
  const int* other = cluster.map_shared_rank(table, (cluster.block_rank() + 1) % cluster.num_blocks());
  out[block * kThreads + threadIdx.x] = other[kThreads - 1 - threadIdx.x];
  cluster.sync();
  if (threadIdx.x == 0) {
    const dim3 index = cluster.block_index();
    unsigned x, y, ofX, ofY;
    asm("mov.u32 %0, %%clusterid.x;" : "=r"(x));
    asm("mov.u32 %0, %%clusterid.y;" : "=r"(y));
    asm("mov.u32 %0, %%nclusterid.x;" : "=r"(ofX));
    asm("mov.u32 %0, %%nclusterid.y;" : "=r"(ofY));
    seen[block] = {cluster.block_rank(), cluster.num_blocks(), index.x, index.y, x, y, ofX, ofY};
  }
}

__global__ void anyShape(Seen* seen, int* out) { exchange(seen, out); }
__global__ __cluster_dims__(2, 2) void fixedShape(Seen* seen, int* out) { exchange(seen, out); }

/// A histogram over all blocks of a cluster, in the shared memory of block 0.
__global__ void histogram(const int* in, int count, int* out) {
  __shared__ int bins[16];
  const cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  cluster.sync();
  int* first = cluster.map_shared_rank(bins, 0);
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) atomicAdd(first + in[i] % 16, 1);
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x < 16) atomicAdd(out + threadIdx.x, bins[threadIdx.x]);
}

/// Threads of all blocks arrive at the mbarrier of block 0, which sends a sum to each by st.async.
__global__ void remote(int* out) {
  __shared__ alignas(8) unsigned long long gate, arrived;
  __shared__ int sum, answer;
  const cg::cluster_group cluster = cg::this_cluster();
  const auto address = [](const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); };
  const auto mapped = [&](const void* p, unsigned rank) {
    unsigned to;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(to) : "r"(address(p)), "r"(rank));
    return to;
  };
  const auto await = [&](const void* p) {
    asm volatile("{ .reg .pred p; AGAIN: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0; @!p bra AGAIN; }" ::"r"(address(p)) : "memory");
  };
  if (threadIdx.x == 0) {
    sum = 0;
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(address(&gate)), "r"(cluster.num_threads()) : "memory");
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address(&arrived)) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4;" ::"r"(address(&arrived)) : "memory");
  }
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&sum, 0), int(cluster.block_rank() * 100 + threadIdx.x));
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(mapped(&gate, 0)) : "memory");
  if (cluster.block_rank() == 0 && threadIdx.x < cluster.num_blocks()) {
    await(&gate);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(mapped(&answer, threadIdx.x)),
                 "r"(sum + int(threadIdx.x)), "r"(mapped(&arrived, threadIdx.x))
                 : "memory");
  }
  await(&arrived);
  if (threadIdx.x == 0) out[blockIdx.x] = answer;
  cluster.sync();
}

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 cluster, A... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = kThreads;
  config.attrs = &attribute;
  config.numAttrs = cluster.x ? 1 : 0;
  EXPECT_OK(cudaLaunchKernelEx(&config, kernel, static_cast<P>(arguments)...));
}

void shapes(dim3 cluster, bool fixed) {
  const dim3 grid(8, 4);
  const int blocks = 32;
  Seen* seen = nullptr;
  int* out = nullptr;
  EXPECT_OK(cudaMalloc(&seen, blocks * sizeof(Seen)));
  EXPECT_OK(cudaMalloc(&out, blocks * kThreads * sizeof(int)));
  launch(fixed ? fixedShape : anyShape, grid, fixed ? dim3(0) : cluster, seen, out);
  std::vector<Seen> host(blocks);
  std::vector<int> values(blocks * kThreads);
  EXPECT_OK(cudaMemcpy(host.data(), seen, blocks * sizeof(Seen), cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy(values.data(), out, values.size() * sizeof(int), cudaMemcpyDeviceToHost));
  bool places = true, read = true;
  for (unsigned block = 0; block < blocks; ++block) {
    const unsigned x = block % grid.x, y = block / grid.x, inCluster = cluster.x * cluster.y;
    const unsigned rank = y % cluster.y * cluster.x + x % cluster.x, next = (rank + 1) % inCluster;
    const Seen& s = host[block];
    places = places && s.rank == rank && s.blocks == inCluster && s.x == x % cluster.x && s.y == y % cluster.y && s.clusterX == x / cluster.x &&
             s.clusterY == y / cluster.y && s.clustersX == grid.x / cluster.x && s.clustersY == grid.y / cluster.y;
    const unsigned other = (y / cluster.y * cluster.y + next / cluster.x) * grid.x + x / cluster.x * cluster.x + next % cluster.x;
    for (int i = 0; i < kThreads; ++i) read = read && values[block * kThreads + i] == int(other * 1000 + kThreads - 1 - i);
  }
  EXPECT(places);
  EXPECT(read);
  cudaFree(seen), cudaFree(out);
}

void histograms() {
  const int count = 5000;
  std::vector<int> in(count), expected(16), bins(16);
  for (int i = 0; i < count; ++i) ++expected[(in[i] = i * i % 977) % 16];
  int *dIn = nullptr, *dOut = nullptr;
  EXPECT_OK(cudaMalloc(&dIn, count * sizeof(int)));
  EXPECT_OK(cudaMalloc(&dOut, 16 * sizeof(int)));
  EXPECT_OK(cudaMemset(dOut, 0, 16 * sizeof(int)));
  EXPECT_OK(cudaMemcpy(dIn, in.data(), count * sizeof(int), cudaMemcpyHostToDevice));
  launch(histogram, dim3(16), dim3(8), dIn, count, dOut);
  EXPECT_OK(cudaMemcpy(bins.data(), dOut, 16 * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(bins == expected);
  cudaFree(dIn), cudaFree(dOut);
}

void arrivals() {
  int* out = nullptr;
  int host[8];
  EXPECT_OK(cudaMalloc(&out, sizeof host));
  launch(remote, dim3(8), dim3(4), out);
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  const int sum = kThreads * (100 + 200 + 300) + 4 * kThreads * (kThreads - 1) / 2;
  bool right = true;
  for (int block = 0; block < 8; ++block) right = right && host[block] == sum + block % 4;
  EXPECT(right);
  cudaFree(out);
}

int main() {
  for (const dim3 cluster : {dim3(1, 1), dim3(2, 1), dim3(4, 2), dim3(1, 4), dim3(8, 1)}) shapes(cluster, false);
  shapes(dim3(2, 2), true);
  histograms();
  arrivals();
  return verdict();
}
