// An int read from an odd address.
// conformance:
#include "show.h"

__global__ void read(const char* x, int* out) { *out = *reinterpret_cast<const int*>(x); }

int main() {
  char* x = nullptr;
  int* out = nullptr;
  SHOW(cudaMalloc(&x, 64));
  SHOW(cudaMalloc(&out, 4));
  SHOW(cudaMemset(x, 0, 64));
  read<<<1, 1>>>(x + 4, out);
  showLaunch("aligned");
  read<<<1, 1>>>(x + 1, out);
  showLaunch("misaligned");
  SHOW(cudaMemset(x, 0, 64));
}
