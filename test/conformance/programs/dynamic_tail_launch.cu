// Tail launches: they begin when their grid and everything else that it launched has ended, in their order, and before what follows in the host's stream.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include "expect.h"

__global__ void append(int* value, int digit) { *value = *value * 10 + digit; }

__global__ void appendSlowly(int* value, int digit) {
  const long long begin = clock64();
  while (clock64() - begin < 1000000) {
  }
  *value = *value * 10 + digit;
}

// The tail is launched first and runs last.
__global__ void tailLast(int* value) {
  append<<<1, 1, 0, cudaStreamTailLaunch>>>(value, 2);
  appendSlowly<<<1, 1>>>(value, 1);
  append<<<1, 1, 0, cudaStreamTailLaunch>>>(value, 3);
}

// The parent reads in its tail what its children computed.
__global__ void addUp(const int* parts, int* sum) {
  for (int i = 0; i < 64; ++i) *sum += parts[i];
}
__global__ void square(int* parts) { parts[threadIdx.x] = threadIdx.x * threadIdx.x; }
__global__ void squareAndAdd(int* parts, int* sum) {
  if (threadIdx.x != 0) return;
  square<<<1, 64, 0, cudaStreamFireAndForget>>>(parts);
  addUp<<<1, 1, 0, cudaStreamTailLaunch>>>(parts, sum);
}

// A tail that has children and a tail of its own: all of it precedes the next tail.
__global__ void outerTail(int* value) {
  append<<<1, 1, 0, cudaStreamTailLaunch>>>(value, 3);
  appendSlowly<<<1, 1>>>(value, 2);
  *value = *value * 10 + 1;
}
__global__ void nested(int* value) {
  outerTail<<<1, 1, 0, cudaStreamTailLaunch>>>(value);
  append<<<1, 1, 0, cudaStreamTailLaunch>>>(value, 4);
}

// A loop: each round is the tail of the one before.
__global__ void round(int* value, int left) {
  *value += left;
  if (left > 1) round<<<1, 1, 0, cudaStreamTailLaunch>>>(value, left - 1);
}

int main() {
  int *device = nullptr, host[5] = {};
  EXPECT_OK(cudaMalloc(&device, 80 * sizeof(int)));
  EXPECT_OK(cudaMemset(device, 0, 80 * sizeof(int)));
  tailLast<<<1, 1>>>(device);
  append<<<1, 1>>>(device, 4);
  squareAndAdd<<<1, 32>>>(device + 8, device + 1);
  nested<<<1, 1>>>(device + 2);
  append<<<1, 1>>>(device + 2, 5);
  round<<<1, 1>>>(device + 3, 10);
  EXPECT_OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 1234);
  EXPECT(host[1] == 63 * 64 * 127 / 6);
  EXPECT(host[2] == 12345);
  EXPECT(host[3] == 55);
  EXPECT_OK(cudaFree(device));
  return verdict();
}
