// Kernels that launch themselves: a sort by recursion, and how deep launches nest.
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

// Marks its depth, and the error of a launch that was refused.
__global__ void descend(int* reached, int* refusal, int depth, int most) {
  reached[depth] += 1;
  if (depth == most) return;
  descend<<<1, 1>>>(reached, refusal, depth + 1, most);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) *refusal = error;
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
  int *device = nullptr, host[41] = {};
  EXPECT_OK(cudaMalloc(&device, sizeof host));
  int* refusal = device + 40;
  for (const int most : {10, 39}) {
    EXPECT_OK(cudaMemset(device, 0, sizeof host));
    descend<<<1, 1>>>(device, refusal, 0, most);
    EXPECT_OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    int deepest = 0;
    while (deepest < 39 && host[deepest + 1] == 1) ++deepest;
    for (int depth = deepest + 1; depth < 40; ++depth) EXPECT(host[depth] == 0);
    if (most == 10) {
      EXPECT(deepest == 10);
      EXPECT(host[40] == cudaSuccess);
    } else {
      EXPECT(deepest == 24);
      EXPECT(host[40] == cudaErrorLaunchMaxDepthExceeded);
    }
  }
  EXPECT_OK(cudaFree(device));
  return verdict();
}
