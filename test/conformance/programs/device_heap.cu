// malloc and free by many threads at once, of all sizes, within a heap that the program chose; what is written stays.
// conformance: judges=itself
#include "expect.h"

constexpr int kThreads = 256, kBlocks = 16, kRounds = 12;

/// Fills blocks of random sizes, checks them later and frees them in another order.
__global__ void churn(unsigned* failed, unsigned* wrong) {
  const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned state = own * 2654435761u + 1;
  unsigned* blocks[4] = {};
  unsigned sizes[4] = {};
  for (int round = 0; round < kRounds; ++round) {
    state = state * 1664525u + 1013904223u;
    const unsigned slot = state >> 30, words = 1 + (state >> 12) % 60;
    if (blocks[slot]) {
      for (unsigned i = 0; i < sizes[slot]; ++i) {
        if (blocks[slot][i] != own * 64 + slot * 7 + i) atomicAdd(wrong, 1);
      }
      free(blocks[slot]);
    }
    blocks[slot] = static_cast<unsigned*>(malloc(words * sizeof(unsigned)));
    sizes[slot] = words;
    if (!blocks[slot]) {
      atomicAdd(failed, 1);
      continue;
    }
    if (reinterpret_cast<unsigned long long>(blocks[slot]) % 16 != 0) atomicAdd(wrong, 1);
    for (unsigned i = 0; i < words; ++i) blocks[slot][i] = own * 64 + slot * 7 + i;
  }
  for (unsigned* block : blocks) free(block);
}

/// Every thread takes 16 KiB, keeps it while all others do, and gives it back.
__global__ void fill(unsigned* failed, void** kept) {
  const unsigned own = blockIdx.x * blockDim.x + threadIdx.x;
  kept[own] = malloc(16 << 10);
  if (!kept[own]) atomicAdd(failed, 1);
}
__global__ void drain(void** kept) { free(kept[blockIdx.x * blockDim.x + threadIdx.x]); }
__global__ void one(unsigned* failed, std::size_t bytes) {
  void* block = malloc(bytes);
  if (!block) atomicAdd(failed, 1);
  free(block);
}

struct Node {
  Node* next;
  int value;
};
__global__ void push(Node** heads) {
  for (int i = 0; i < 20; ++i) {
    Node* node = new Node{heads[threadIdx.x], static_cast<int>(threadIdx.x) * 100 + i};
    heads[threadIdx.x] = node;
  }
}
__global__ void sum(Node** heads, int* sums) {
  while (Node* node = heads[threadIdx.x]) {
    sums[threadIdx.x] += node->value;
    heads[threadIdx.x] = node->next;
    delete node;
  }
}

int main() {
  std::size_t limit = 0;
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 96u << 20));
  EXPECT_OK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
  EXPECT(limit == 96u << 20);
  unsigned* counts = nullptr;
  EXPECT_OK(cudaMallocHost(&counts, 2 * sizeof(unsigned)));
  counts[0] = counts[1] = 0;
  for (int run = 0; run < 4; ++run) {
    churn<<<kBlocks, kThreads>>>(counts, counts + 1);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
  }
  EXPECT(counts[0] == 0);
  EXPECT(counts[1] == 0);
  void** kept = nullptr;
  EXPECT_OK(cudaMalloc(&kept, kBlocks * kThreads * sizeof(void*)));
  for (int run = 0; run < 3; ++run) {
    fill<<<kBlocks, kThreads>>>(counts, kept);
    drain<<<kBlocks, kThreads>>>(kept);
    EXPECT_OK(cudaGetLastError());
    EXPECT_OK(cudaDeviceSynchronize());
  }
  EXPECT(counts[0] == 0);
  one<<<1, 1>>>(counts, 80u << 20);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counts[0] == 0);
  one<<<1, 1>>>(counts, 97u << 20);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(counts[0] == 1);
  Node** heads = nullptr;
  int* sums = nullptr;
  EXPECT_OK(cudaMallocHost(&heads, 64 * sizeof(Node*)));
  EXPECT_OK(cudaMallocHost(&sums, 64 * sizeof(int)));
  std::memset(heads, 0, 64 * sizeof(Node*));
  std::memset(sums, 0, 64 * sizeof(int));
  push<<<1, 64>>>(heads);
  sum<<<1, 64>>>(heads, sums);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 64; ++i) EXPECT(sums[i] == i * 2000 + 190);
  // After a reset the heap is a new one: nothing that was held before counts.
  fill<<<kBlocks, kThreads>>>(counts, kept);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaDeviceReset());
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 96u << 20));
  EXPECT_OK(cudaMallocHost(&counts, sizeof(unsigned)));
  *counts = 0;
  one<<<1, 1>>>(counts, 80u << 20);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(*counts == 0);
  return verdict();
}
