// Streams: priorities, flags, many at once.
// conformance:
#include "show.h"

__global__ void multiply(int* x, int n, int by) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}

static void show(const char* what, cudaStream_t stream) {
  unsigned flags = 99;
  int priority = 99;
  const cudaError_t first = cudaStreamGetFlags(stream, &flags), second = cudaStreamGetPriority(stream, &priority);
  std::printf("%s: %s, flags %u; %s, priority %d\n", what, resultName(first), flags, resultName(second), priority);
}

int main() {
  cudaStream_t plain = nullptr, free = nullptr, high = nullptr, higher = nullptr, low = nullptr, refused = nullptr;
  SHOW(cudaStreamCreate(&plain));
  SHOW(cudaStreamCreateWithFlags(&free, cudaStreamNonBlocking));
  SHOW(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, -1));
  SHOW(cudaStreamCreateWithPriority(&higher, cudaStreamDefault, -1000));
  SHOW(cudaStreamCreateWithPriority(&low, cudaStreamDefault, 3));
  show("plain", plain);
  show("non-blocking", free);
  show("high", high);
  show("higher than there is", higher);
  show("lower than there is", low);
  show("default", nullptr);
  show("legacy", cudaStreamLegacy);
  show("per thread", cudaStreamPerThread);
  SHOW(cudaStreamCreateWithFlags(&refused, 77));
  constexpr int many = 40, n = 1000;
  static int host[many][n];
  cudaStream_t streams[many];
  int* d = nullptr;
  SHOW(cudaMalloc(&d, sizeof host));
  for (int i = 0; i < many; ++i) {
    for (int j = 0; j < n; ++j) host[i][j] = i + j;
    cudaStreamCreate(&streams[i]);
    cudaMemcpyAsync(d + i * n, host[i], sizeof host[i], cudaMemcpyHostToDevice, streams[i]);
    for (int round = 0; round < 5; ++round) multiply<<<8, 128, 0, streams[i]>>>(d + i * n, n, round + 2);
    cudaMemcpyAsync(host[i], d + i * n, sizeof host[i], cudaMemcpyDeviceToHost, streams[i]);
  }
  SHOW(cudaGetLastError());
  SHOW(cudaDeviceSynchronize());
  std::printf("%08x\n", digest(host, sizeof host));
  for (cudaStream_t stream : streams) cudaStreamDestroy(stream);
  SHOW(cudaGetLastError());
  for (cudaStream_t stream : {plain, free, high, higher, low}) SHOW(cudaStreamDestroy(stream));
}
