// Kernels that launch kernels: parameters, dimensions and shared memory of the child, what it sees of its parent, and that the parent is complete only when its children are.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include <cstring>

#include "expect.h"

struct Big {
  double values[100];
  char tail[3];
};

__global__ void takeAll(char a, double b, short c, Big big, int* out) {
  out[0] = a;
  out[1] = static_cast<int>(b * 4);
  out[2] = c;
  out[3] = static_cast<int>(big.values[0] + big.values[99]);
  out[4] = big.tail[2];
}

__global__ void giveAll(Big big, int* out) {
  big.values[0] += 1;
  takeAll<<<1, 1>>>('x', 2.25, -7, big, out);
}

__global__ void describe(unsigned* out) {
  extern __shared__ unsigned shared[];
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  shared[thread] = block * 1000 + thread;
  __syncthreads();
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = shared[threads - 1 - thread];
}

__global__ void launchShaped(unsigned* out) {
  if (threadIdx.x == 0) describe<<<dim3(2, 3, 2), dim3(4, 2, 3), 24 * sizeof(unsigned)>>>(out);
}

// Each thread of each block writes its number and launches a child that reads it.
__global__ void addTo(const int* from, int* to, int index) { atomicAdd(to, from[index]); }

__global__ void eachLaunches(int* numbers, int* sum) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  numbers[i] = i + 1;
  addTo<<<1, 1>>>(numbers, sum, i);
}

// A child that takes long. What follows its parent in the host's stream must not begin before.
__global__ void slowly(int* value) {
  const long long begin = clock64();
  while (clock64() - begin < 3000000) {
  }
  *value = 41;
}
__global__ void launchSlow(int* value) { slowly<<<1, 1>>>(value); }
__global__ void addOne(int* value) { *value += 1; }

void parameters() {
  int *out = nullptr, host[5] = {};
  EXPECT_OK(cudaMalloc(&out, sizeof host));
  Big big = {};
  big.values[0] = 5;
  big.values[99] = 30;
  big.tail[2] = 9;
  giveAll<<<1, 1>>>(big, out);
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 'x');
  EXPECT(host[1] == 9);
  EXPECT(host[2] == -7);
  EXPECT(host[3] == 36);
  EXPECT(host[4] == 9);
  EXPECT_OK(cudaFree(out));
}

void shape() {
  unsigned *out = nullptr, host[12 * 24] = {};
  EXPECT_OK(cudaMalloc(&out, sizeof host));
  launchShaped<<<1, 32>>>(out);
  EXPECT_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned block = 0; block < 12; ++block) {
    for (unsigned thread = 0; thread < 24; ++thread)
      EXPECT(host[block * 24 + thread] == block * 1000 + 23 - thread);
  }
  EXPECT_OK(cudaFree(out));
}

void manyParents() {
  int *numbers = nullptr, *sum = nullptr, host = 0;
  EXPECT_OK(cudaMalloc(&numbers, 512 * sizeof(int)));
  EXPECT_OK(cudaMalloc(&sum, sizeof(int)));
  EXPECT_OK(cudaMemset(sum, 0, sizeof(int)));
  eachLaunches<<<8, 64>>>(numbers, sum);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpy(&host, sum, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host == 512 * 513 / 2);
  EXPECT_OK(cudaFree(numbers));
  EXPECT_OK(cudaFree(sum));
}

void completion() {
  int *value = nullptr, host = 0;
  cudaStream_t stream = nullptr, other = nullptr;
  cudaEvent_t ended = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreate(&ended));
  EXPECT_OK(cudaMalloc(&value, sizeof(int)));
  // In the order of one stream.
  launchSlow<<<1, 1, 0, stream>>>(value);
  addOne<<<1, 1, 0, stream>>>(value);
  EXPECT_OK(cudaMemcpyAsync(&host, value, sizeof host, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(host == 42);
  // Behind an event of another stream.
  EXPECT_OK(cudaMemsetAsync(value, 0, sizeof(int), stream));
  launchSlow<<<1, 1, 0, stream>>>(value);
  EXPECT_OK(cudaEventRecord(ended, stream));
  EXPECT_OK(cudaStreamWaitEvent(other, ended, 0));
  addOne<<<1, 1, 0, other>>>(value);
  EXPECT_OK(cudaStreamSynchronize(other));
  EXPECT_OK(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host == 42);
  // Behind an event that the host waits for.
  EXPECT_OK(cudaMemsetAsync(value, 0, sizeof(int), stream));
  launchSlow<<<1, 1, 0, stream>>>(value);
  EXPECT_OK(cudaEventRecord(ended, stream));
  EXPECT_OK(cudaEventSynchronize(ended));
  EXPECT_OK(cudaMemcpy(&host, value, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host == 41);
  EXPECT_OK(cudaFree(value));
}

int main() {
  parameters();
  shape();
  manyParents();
  completion();
  return verdict();
}
