// Kernels reach whole words at the end of an odd number of bytes, as NCCL does.
// conformance: judges=itself
#include "expect.h"

__global__ void write(unsigned* at, unsigned value) { *at = value; }
__global__ void read(const unsigned* at, unsigned* out) { *out = *at; }

int main() {
  unsigned* result = nullptr;
  EXPECT_OK(cudaMalloc(&result, sizeof *result));
  for (const std::size_t bytes : {1, 5, 509, 1021}) {
    char* memory = nullptr;
    EXPECT_OK(cudaMalloc(&memory, bytes));
    auto* last = reinterpret_cast<unsigned*>(memory + bytes / 4 * 4);
    write<<<1, 1>>>(last, 1234);
    read<<<1, 1>>>(last, result);
    unsigned value = 0;
    EXPECT_OK(cudaMemcpy(&value, result, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT(value == 1234);
    EXPECT_OK(cudaFree(memory));
  }
  EXPECT_OK(cudaFree(result));
  return verdict();
}
