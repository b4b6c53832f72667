// What programs about graphs share: a kernel, and what it leaves in memory.
#pragma once

#include "expect.h"

__global__ void addTo(int* x, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += by;
}

inline bool all(const int* host, int n, int value) {
  for (int i = 0; i < n; ++i) {
    if (host[i] != value) return false;
  }
  return true;
}

/// Whether every int of device memory has the value.
inline bool deviceHas(const int* device, int n, int value) {
  int* host = new int[n];
  EXPECT_OK(cudaMemcpy(host, device, n * sizeof(int), cudaMemcpyDeviceToHost));
  const bool has = all(host, n, value);
  delete[] host;
  return has;
}

inline void runOnce(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t exec = nullptr;
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphLaunch(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaGraphExecDestroy(exec));
}
