// Two thousand launches without a wait, then one look.
// conformance:
#include "show.h"

__global__ void step(unsigned* x, unsigned i) { *x = *x * 1664525u + i; }

int main() {
  unsigned *d = nullptr, value = 1, expected = 1;
  SHOW(cudaMalloc(&d, sizeof value));
  SHOW(cudaMemcpy(d, &value, sizeof value, cudaMemcpyHostToDevice));
  for (unsigned i = 0; i < 2000; ++i) {
    step<<<1, 1>>>(d, i);
    expected = expected * 1664525u + i;
  }
  SHOW(cudaGetLastError());
  SHOW(cudaMemcpy(&value, d, sizeof value, cudaMemcpyDeviceToHost));
  std::printf("%08x, expected %08x\n", value, expected);
}
