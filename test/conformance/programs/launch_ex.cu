// cudaLaunchKernelEx: without attributes, cooperative, with a stream's priority and with attributes that mean nothing for the kernel.
// conformance: flags=-arch=sm_90
#include "show.h"

__global__ void where(int* out, int scale) {
  extern __shared__ int shared[];
  if (threadIdx.x == 0) shared[0] = blockIdx.x * scale;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = shared[0] + threadIdx.x;
}

static void show(const char* what, cudaLaunchConfig_t& config, int* d) {
  int out[24] = {};
  cudaMemset(d, 0, sizeof out);
  const cudaError_t launched = cudaLaunchKernelEx(&config, where, d, 100);
  std::printf("%s: %s, %s;", what, resultName(launched), resultName(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost)));
  for (int value : out) std::printf(" %d", value);
  std::printf("\n");
}

int main() {
  int* d = nullptr;
  cudaStream_t stream = nullptr;
  SHOW(cudaMalloc(&d, 96));
  SHOW(cudaStreamCreate(&stream));
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = 3, config.blockDim = 8, config.dynamicSmemBytes = 16, config.stream = stream;
  show("no attributes", config, d);
  config.attrs = attributes, config.numAttrs = 1;
  attributes[0].id = cudaLaunchAttributeCooperative, attributes[0].val.cooperative = 1;
  show("cooperative", config, d);
  attributes[0].id = cudaLaunchAttributePriority, attributes[0].val.priority = -1;
  show("priority", config, d);
  attributes[0].id = cudaLaunchAttributeIgnore;
  show("ignore", config, d);
  config.numAttrs = 0, config.gridDim = 0;
  show("no block", config, d);
  config.gridDim = 3, config.blockDim = 2000;
  show("2000 threads", config, d);
  SHOW(cudaGetLastError());
  int scale = 7;
  void* arguments[] = {&d, &scale};
  config.blockDim = 4;
  SHOW(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(where), arguments));
  int out[4] = {};
  SHOW(cudaMemcpy(out, d + 4, sizeof out, cudaMemcpyDeviceToHost));
  std::printf("%d %d %d %d\n", out[0], out[1], out[2], out[3]);
}
