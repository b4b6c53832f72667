// What programs about cuMemHostRegister share.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "expect.h"

constexpr std::size_t page = 4096;

__global__ void addToAll(int* data, int count, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

/// Kernels and copies reach the memory at the host's address.
inline void useRegistered(int* data, int count) {
  for (int i = 0; i < count; ++i) data[i] = i;
  int* device = nullptr;
  EXPECT_OK(cudaHostGetDevicePointer(&device, data, 0));
  EXPECT(device == data);
  addToAll<<<(count + 255) / 256, 256>>>(device, count, 5);
  EXPECT_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < count; ++i) wrong += data[i] != i + 5;
  EXPECT(wrong == 0);
  int* copy = nullptr;
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMalloc(&copy, count * sizeof(int)));
  EXPECT_OK(cudaMemcpyAsync(copy, data, count * sizeof(int), cudaMemcpyHostToDevice, stream));
  addToAll<<<(count + 255) / 256, 256, 0, stream>>>(copy, count, 7);
  EXPECT_OK(cudaMemcpyAsync(data, copy, count * sizeof(int), cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < count; ++i) wrong += data[i] != i + 12;
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(copy));
  EXPECT_OK(cudaStreamDestroy(stream));
}
