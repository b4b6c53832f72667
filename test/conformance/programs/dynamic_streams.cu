// Streams and events of a kernel: order within a stream, waits between streams, the default stream of a block, launches without order.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include "expect.h"

// Not commutative, so that the result tells the order.
__global__ void append(int* value, int digit) { *value = *value * 10 + digit; }
__global__ void appendSlowly(int* value, int digit) {
  const long long begin = clock64();
  while (clock64() - begin < 1000000) {
  }
  *value = *value * 10 + digit;
}
__global__ void count(int* value) { atomicAdd(value, 1); }

__device__ bool failed(cudaError_t error, int* errors) {
  if (error != cudaSuccess) atomicAdd(errors, 1);
  return error != cudaSuccess;
}

__global__ void inCreatedStream(int* value, int* errors) {
  cudaStream_t stream;
  if (failed(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), errors)) return;
  appendSlowly<<<1, 1, 0, stream>>>(value, 1);
  append<<<1, 1, 0, stream>>>(value, 2);
  append<<<1, 1, 0, stream>>>(value, 3);
  failed(cudaStreamDestroy(stream), errors);
}

// Threads of one block share its default stream.
__global__ void inDefaultStream(int* values, int* errors) {
  int* value = values + blockIdx.x;
  for (int thread = 0; thread < 4; ++thread) {
    if (threadIdx.x == thread) {
      if (thread == 0) {
        appendSlowly<<<1, 1>>>(value, 1);
      } else {
        append<<<1, 1>>>(value, thread + 1);
      }
    }
    __syncthreads();
  }
  failed(cudaGetLastError(), errors);
}

__global__ void acrossStreams(int* value, int* errors) {
  cudaStream_t first, second;
  cudaEvent_t event, unused;
  failed(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), errors);
  failed(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), errors);
  failed(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), errors);
  failed(cudaEventCreateWithFlags(&unused, cudaEventDisableTiming), errors);
  failed(cudaStreamWaitEvent(first, unused, 0), errors);  // never recorded: no wait
  appendSlowly<<<1, 1, 0, first>>>(value, 1);
  failed(cudaEventRecord(event, first), errors);
  failed(cudaStreamWaitEvent(second, event, 0), errors);
  append<<<1, 1, 0, second>>>(value, 2);
  failed(cudaEventRecord(event, second), errors);
  failed(cudaStreamWaitEvent(first, event, 0), errors);
  append<<<1, 1, 0, first>>>(value, 3);
  failed(cudaEventDestroy(event), errors);
  failed(cudaEventDestroy(unused), errors);
  failed(cudaStreamDestroy(first), errors);
  failed(cudaStreamDestroy(second), errors);
}

__global__ void withoutOrder(int* value, int* errors) {
  count<<<2, 32, 0, cudaStreamFireAndForget>>>(value);
  failed(cudaGetLastError(), errors);
}

int main() {
  int *device = nullptr, host[32] = {};
  EXPECT_OK(cudaMalloc(&device, 33 * sizeof(int)));
  int* errors = device + 32;
  EXPECT_OK(cudaMemset(device, 0, 33 * sizeof(int)));
  inCreatedStream<<<1, 1>>>(device, errors);
  inDefaultStream<<<8, 32>>>(device + 1, errors);
  acrossStreams<<<1, 1>>>(device + 9, errors);
  withoutOrder<<<4, 8>>>(device + 10, errors);
  EXPECT_OK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
  EXPECT(host[0] == 123);
  for (int block = 0; block < 8; ++block) EXPECT(host[1 + block] == 1234);
  EXPECT(host[9] == 123);
  EXPECT(host[10] == 4 * 8 * 64);
  int wrong = 0;
  EXPECT_OK(cudaMemcpy(&wrong, errors, sizeof wrong, cudaMemcpyDeviceToHost));
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFree(device));
  return verdict();
}
