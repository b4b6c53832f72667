// A block's shared memory is allocated in units of 128 bytes: an access behind the program's own
// variables but within the unit is no fault.
// conformance: judges=itself
#include "expect.h"

__global__ void touch(int* out, int index) {
  __shared__ int word;
  volatile int* words = &word;
  words[0] = 7;
  words[index] = 9;
  *out = words[0] + words[index];
}

int main() {
  int *out = nullptr, sum = 0;
  EXPECT_OK(cudaMalloc(&out, sizeof sum));
  for (const int index : {1, 2, 30, 31}) {
    touch<<<1, 1>>>(out, index);
    EXPECT_OK(cudaMemcpy(&sum, out, sizeof sum, cudaMemcpyDeviceToHost));
    EXPECT(sum == 16);
  }
  return verdict();
}
