// Kernels that launch themselves: a sort by recursion, and a chain of grids.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include <vector>

#include "expect.h"

__device__ void swapAt(int* data, int a, int b) {
  const int t = data[a];
  data[a] = data[b];
  data[b] = t;
}

// Quicksort: each part is a grid, in two streams. Small parts are sorted in place.
__global__ void sortPart(int* data, int first, int last, int depth, int* errors) {
  if (last - first < 32 || depth == 16) {
    for (int i = first + 1; i < last; ++i) {
      for (int j = i; j > first && data[j - 1] > data[j]; --j) swapAt(data, j - 1, j);
    }
    return;
  }
  const int pivot = data[(first + last) / 2];
  int low = first, high = last - 1;
  while (low <= high) {
    while (data[low] < pivot) ++low;
    while (data[high] > pivot) --high;
    if (low <= high) swapAt(data, low++, high--);
  }
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) {
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess)
      atomicAdd(errors, 1);
  }
  sortPart<<<1, 1, 0, streams[0]>>>(data, first, high + 1, depth + 1, errors);
  sortPart<<<1, 1, 0, streams[1]>>>(data, low, last, depth + 1, errors);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(errors, 1);
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
}

// Each grid launches the next one, and marks its depth.
__global__ void descend(int* reached, int* errors, int depth, int most) {
  reached[depth] += 1;
  if (depth == most) return;
  descend<<<1, 1>>>(reached, errors, depth + 1, most);
  if (cudaGetLastError() != cudaSuccess) atomicAdd(errors, 1);
}

void sorts() {
  constexpr int kCount = 2000;
  std::vector<int> values(kCount);
  unsigned random = 1;
  for (int& value : values) value = static_cast<int>((random = random * 1664525 + 1013904223) >> 8);
  int *data = nullptr, *errors = nullptr, wrong = 0;
  EXPECT_OK(cudaMalloc(&data, kCount * sizeof(int)));
  EXPECT_OK(cudaMalloc(&errors, sizeof(int)));
  EXPECT_OK(cudaMemset(errors, 0, sizeof(int)));
  EXPECT_OK(cudaMemcpy(data, values.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  sortPart<<<1, 1>>>(data, 0, kCount, 0, errors);
  EXPECT_OK(cudaMemcpy(values.data(), data, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaMemcpy(&wrong, errors, sizeof wrong, cudaMemcpyDeviceToHost));
  EXPECT(wrong == 0);
  for (int i = 1; i < kCount; ++i) EXPECT(values[i - 1] <= values[i]);
  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFree(errors));
}

int main() {
  sorts();
  constexpr int kDepth = 10;
  int *device = nullptr, host[kDepth + 2] = {};
  EXPECT_OK(cudaMalloc(&device, sizeof host));
  EXPECT_OK(cudaMemset(device, 0, sizeof host));
  descend<<<1, 1>>>(device, device + kDepth + 1, 0, kDepth);
  EXPECT_OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  for (int depth = 0; depth <= kDepth; ++depth) EXPECT(host[depth] == 1);
  EXPECT(host[kDepth + 1] == 0);
  EXPECT_OK(cudaFree(device));
  return verdict();
}
