// cudaMallocAsync as the first call of a program and of a thread: the runtime makes the context.
// conformance: flags=-arch=sm_90 judges=itself
#include <thread>

#include "expect.h"

void allocates(cudaStream_t stream) {
  int *memory = nullptr, value = 0;
  EXPECT_OK(cudaMallocAsync(&memory, sizeof value, stream));
  EXPECT_OK(cudaMemsetAsync(memory, 1, sizeof value, stream));
  EXPECT_OK(cudaMemcpyAsync(&value, memory, sizeof value, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaFreeAsync(memory, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(value == 0x01010101);
}

int main() {
  allocates(cudaStreamPerThread);
  std::thread(allocates, nullptr).join();
  return verdict();
}
