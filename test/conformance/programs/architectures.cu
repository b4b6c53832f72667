// Several PTX images in one program: the driver takes the one for the highest architecture that the device has.
// conformance: build=newest flags="-gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=compute_90 -gencode arch=compute_100,code=compute_100"
// conformance: build=oldest flags="-gencode arch=compute_75,code=compute_75"
// conformance: build=none flags="-gencode arch=compute_100,code=compute_100"
#include "show.h"

__global__ void architecture(int* out) {
#ifdef __CUDA_ARCH__
  *out = __CUDA_ARCH__;
#endif
}

int main() {
  int *d = nullptr, value = 0;
  SHOW(cudaMalloc(&d, sizeof value));
  SHOW(cudaMemset(d, 0, sizeof value));
  architecture<<<1, 1>>>(d);
  showLaunch("architecture");
  SHOW(cudaMemcpy(&value, d, sizeof value, cudaMemcpyDeviceToHost));
  std::printf("compiled for %d\n", value);
  SHOW(cudaFree(d));
}
