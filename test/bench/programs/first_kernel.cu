// Time from main to the end of the first kernel.
#include "measure.h"

__global__ void nothing() {}

int main() {
  const double start = seconds();
  nothing<<<1, 1>>>();
  CHECK(cudaDeviceSynchronize());
  report("start to first kernel", (seconds() - start) * 1e3, "ms");
}
