// Programs with one fault each, for the checks of the simulated GPU, and one without. The test
// finds the lines by their marks.
#include <cstdio>
#include <cstring>

constexpr int kThreads = 256;

template <bool right>
__global__ void sum(const int* in, int* out) {
  __shared__ int part[kThreads];
  part[threadIdx.x] = in[threadIdx.x];  // mark: race writes
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (right) __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];  // mark: race reads
    if (!right) __syncthreads();
  }
  if (threadIdx.x == 0) *out = part[0];
}

__global__ void shift(const int* in, int* out) {
  out[threadIdx.x + 1] = in[threadIdx.x];  // mark: outside
}

__global__ void meet(int* out) {
  if (threadIdx.x % 2) {
    __syncthreads();  // mark: barrier odd
    atomicAdd(out, 1);
  } else {
    atomicAdd(out, 2);
    __syncthreads();  // mark: barrier even
  }
}

int main(int, char** arguments) {
  const char* fault = arguments[1];
  int *in = nullptr, *out = nullptr;
  cudaMalloc(&in, kThreads * sizeof(int));
  cudaMalloc(&out, kThreads * sizeof(int));
  cudaMemset(in, 1, kThreads * sizeof(int));
  if (strcmp(fault, "race") == 0) sum<false><<<1, kThreads>>>(in, out);
  if (strcmp(fault, "none") == 0) sum<true><<<1, kThreads>>>(in, out);
  if (strcmp(fault, "outside") == 0) shift<<<1, kThreads>>>(in, out);
  if (strcmp(fault, "freed") == 0) {
    cudaFree(in);
    shift<<<1, 32>>>(in, out);
  }
  if (strcmp(fault, "barrier") == 0) meet<<<1, 64>>>(out);
  const cudaError_t launched = cudaGetLastError(), ended = cudaDeviceSynchronize();
  printf("%s\n", cudaGetErrorName(launched != cudaSuccess ? launched : ended));
  return 0;
}
