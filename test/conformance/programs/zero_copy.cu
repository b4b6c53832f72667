// Pinned memory that kernels read and write in place.
// conformance:
#include "show.h"

__global__ void halve(const int* in, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] / 2;
}

int main() {
  constexpr int n = 70000;
  int *in = nullptr, *out = nullptr, *dIn = nullptr, *dOut = nullptr;
  unsigned flags = 99;
  SHOW(cudaHostAlloc(&in, n * sizeof(int), cudaHostAllocMapped | cudaHostAllocWriteCombined));
  SHOW(cudaHostAlloc(&out, n * sizeof(int), cudaHostAllocPortable));
  SHOW(cudaHostGetDevicePointer(&dIn, in, 0));
  SHOW(cudaHostGetDevicePointer(&dOut, out, 0));
  std::printf("same address: %s\n", yesNo(dOut == out));
  SHOW(cudaHostGetFlags(&flags, in));
  std::printf("flags %u\n", flags);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n; ++i) in[i] = i * (round + 2);
    halve<<<(n + 255) / 256, 256>>>(dIn, dOut, n);
    showLaunch("halve");
    int wrong = 0;
    for (int i = 0; i < n; ++i) wrong += out[i] != i * (round + 2) / 2;
    std::printf("%d wrong\n", wrong);
  }
  halve<<<1, 32>>>(out + 100, out, 32);
  showLaunch("with the host's own pointer");
  std::printf("%d %d\n", out[0], out[31]);
  int* d = nullptr;
  cudaStream_t stream = nullptr;
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaMalloc(&d, n * sizeof(int)));
  SHOW(cudaMemcpyAsync(d, out, n * sizeof(int), cudaMemcpyHostToDevice, stream));
  SHOW(cudaMemcpyAsync(in, d, n * sizeof(int), cudaMemcpyDeviceToHost, stream));
  SHOW(cudaStreamSynchronize(stream));
  std::printf("round trip %08x %08x\n", digest(in, n * sizeof(int)), digest(out, n * sizeof(int)));
  int ordinary = 0;
  SHOW(cudaHostGetDevicePointer(&dIn, &ordinary, 0));
  SHOW(cudaGetLastError());
  SHOW(cudaFreeHost(in));
  SHOW(cudaFreeHost(out));
  SHOW(cudaFreeHost(out));
  SHOW(cudaGetLastError());
}
