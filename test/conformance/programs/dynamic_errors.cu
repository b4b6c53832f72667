// Errors of the device runtime: refused launches, errors by thread, streams without events, the limit of pending launches; queries; the heap.
// conformance: flags="-rdc=true -lcudadevrt" judges=itself
#include "expect.h"

__global__ void count(int* value) { atomicAdd(value, 1); }

// Results that the host compares: one for each call.
__global__ void wrongCalls(int* value, int* results) {
  count<<<1, 2048>>>(value);
  results[0] = cudaPeekAtLastError();
  results[1] = cudaGetLastError();
  results[2] = cudaGetLastError();
  count<<<0, 1>>>(value);
  results[3] = cudaGetLastError();
  count<<<1, 1, 10 << 20>>>(value);
  results[4] = cudaGetLastError();
  cudaEvent_t event;
  results[5] = cudaEventCreateWithFlags(&event, cudaEventDefault);
  cudaGetLastError();
  results[6] = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  results[7] = cudaEventRecord(event, cudaStreamTailLaunch);
  results[8] = cudaStreamWaitEvent(cudaStreamFireAndForget, event, 0);
  cudaGetLastError();
  results[9] = cudaEventDestroy(event);
}

// Only odd threads fail.
__global__ void errorsByThread(int* value, int* results) {
  if (threadIdx.x % 2 == 1) count<<<1, 2048>>>(value);
  results[threadIdx.x] = cudaGetLastError();
}

// Tails cannot begin before their parent has ended, so all of them are pending.
__global__ void tooMany(int* value, int* results, int launches) {
  int accepted = 0;
  for (int i = 0; i < launches; ++i) {
    count<<<1, 1, 0, cudaStreamTailLaunch>>>(value);
    const cudaError_t error = cudaGetLastError();
    accepted += error == cudaSuccess;
    if (error != cudaSuccess) results[1] = error;
  }
  results[0] = accepted;
}

__global__ void questions(int* results) {
  size_t limit = 0;
  cudaFuncAttributes attributes;
  results[0] = cudaDeviceGetAttribute(&results[1], cudaDevAttrMultiProcessorCount, 0);
  results[2] = cudaGetDevice(&results[3]);
  results[4] = cudaFuncGetAttributes(&attributes, count);
  results[5] = attributes.maxThreadsPerBlock;
  results[6] = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&results[7], count, 256, 0);
  results[8] = cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount);
  results[9] = static_cast<int>(limit);
  results[10] = cudaGetDeviceCount(&results[11]);
  const char* name = cudaGetErrorName(cudaErrorInvalidValue);
  results[12] = name[0] == 'c' && name[4] == 'E';
}

__global__ void heap(int* results) {
  int* memory = nullptr;
  results[0] = cudaMalloc(reinterpret_cast<void**>(&memory), 64 * sizeof(int));
  if (memory == nullptr) return;
  memory[63] = 17;
  results[1] = memory[63];
  results[2] = cudaFree(memory);
}

int main() {
  int *device = nullptr, *results = nullptr, host[32] = {}, counted = 0;
  EXPECT_OK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 64));
  EXPECT_OK(cudaMalloc(&device, sizeof(int)));
  EXPECT_OK(cudaMalloc(&results, sizeof host));
  EXPECT_OK(cudaMemset(device, 0, sizeof(int)));
  const auto read = [&] {
    EXPECT_OK(cudaMemcpy(host, results, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaMemcpy(&counted, device, sizeof counted, cudaMemcpyDeviceToHost));
    EXPECT_OK(cudaMemset(results, 0, sizeof host));
  };

  wrongCalls<<<1, 1>>>(device, results);
  read();
  EXPECT(counted == 0);
  EXPECT(host[0] == cudaErrorInvalidConfiguration);
  EXPECT(host[1] == cudaErrorInvalidConfiguration);
  EXPECT(host[2] == cudaSuccess);
  EXPECT(host[3] == cudaErrorInvalidConfiguration);
  EXPECT(host[4] != cudaSuccess);
  EXPECT(host[5] == cudaErrorInvalidValue);
  EXPECT(host[6] == cudaSuccess);
  EXPECT(host[7] == cudaErrorInvalidValue);
  EXPECT(host[8] == cudaErrorInvalidValue);
  EXPECT(host[9] == cudaSuccess);

  errorsByThread<<<1, 32>>>(device, results);
  read();
  EXPECT(counted == 0);
  for (int thread = 0; thread < 32; ++thread)
    EXPECT(host[thread] == (thread % 2 == 1 ? cudaErrorInvalidConfiguration : cudaSuccess));

  size_t limit = 0;
  EXPECT_OK(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
  EXPECT(limit >= 64 && limit < 10000);
  const int tails = static_cast<int>(limit) * 3;
  tooMany<<<1, 1>>>(device, results, tails);
  read();
  EXPECT(host[0] < tails);
  EXPECT(host[0] > 0);
  EXPECT(host[1] == cudaErrorLaunchPendingCountExceeded);
  EXPECT(counted == host[0]);

  cudaDeviceProp properties;
  int blocks = 0, devices = 0;
  EXPECT_OK(cudaGetDeviceProperties(&properties, 0));
  EXPECT_OK(cudaGetDeviceCount(&devices));
  EXPECT_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, count, 256, 0));
  questions<<<1, 1>>>(results);
  read();
  EXPECT(host[0] == cudaSuccess && host[1] == properties.multiProcessorCount);
  EXPECT(host[2] == cudaSuccess && host[3] == 0);
  EXPECT(host[4] == cudaSuccess && host[5] == 1024);
  EXPECT(host[6] == cudaSuccess && host[7] == blocks);
  EXPECT(host[8] == cudaSuccess && host[9] == static_cast<int>(limit));
  EXPECT(host[10] == cudaSuccess && host[11] == devices);
  EXPECT(host[12]);

  heap<<<1, 1>>>(results);
  read();
  EXPECT(host[0] == cudaSuccess && host[1] == 17 && host[2] == cudaSuccess);

  EXPECT_OK(cudaFree(results));
  EXPECT_OK(cudaFree(device));
  return verdict();
}
