// No device is visible: every call says so, and the program can end in peace.
// conformance:
#include <cstdlib>

#include "show.h"

__global__ void nothing() {}

int main() {
  setenv("CUDA_VISIBLE_DEVICES", "", 1);
  int count = 7, device = 7;
  void* p = nullptr;
  SHOW(cudaGetDeviceCount(&count));
  std::printf("%d\n", count);
  SHOW(cudaGetLastError());
  SHOW(cudaGetDevice(&device));
  SHOW(cudaMalloc(&p, 16));
  SHOW(cudaSetDevice(0));
  SHOW(cudaFree(nullptr));
  nothing<<<1, 1>>>();
  SHOW(cudaGetLastError());
}
