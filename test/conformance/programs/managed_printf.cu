// An access to managed memory while the thread has standard output locked, and the GPU has printed.
// conformance: judges=itself
// conformance: build=moves managed=moves judges=itself
#include <unistd.h>

#include <cstdio>

#include "expect.h"

__global__ void write(unsigned* data, size_t count) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) data[i] = 5;
}
__global__ void speak(volatile int* go) {
  while (*go == 0) continue;
  printf("from the GPU\n");
}

int main() {
  const size_t count = (2 << 20) / 4;
  unsigned* data = nullptr;
  EXPECT_OK(cudaMallocManaged(&data, count * 4));
  write<<<1, 256>>>(data, count);
  EXPECT_OK(cudaDeviceSynchronize());
  int* go = nullptr;
  EXPECT_OK(cudaMallocHost(&go, sizeof *go));
  *go = 0;
  speak<<<1, 1>>>(go);
  flockfile(stdout);
  *static_cast<volatile int*>(go) = 1;
  usleep(200000);  // the text comes, and cannot be written
  EXPECT(data[count - 1] == 5u);
  funlockfile(stdout);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFreeHost(go));
  return verdict();
}
