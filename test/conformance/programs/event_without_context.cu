// A thread without a current context waits for events behind launches, and destroys them.
// conformance: flags=-lcuda judges=itself
#include <thread>

#include "expect.h"
#include "show_driver.h"

constexpr int kRounds = 100;

__global__ void write(volatile int* words, int value) { words[threadIdx.x] = value; }

int main() {
  volatile int* words = nullptr;
  EXPECT_OK(cudaHostAlloc(const_cast<int**>(&words), 128, cudaHostAllocMapped));
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 1; i <= kRounds; ++i) {
    CUevent event = nullptr;
    EXPECT(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    write<<<1, 32, 0, stream>>>(words, i);
    EXPECT(cuEventRecord(event, stream) == CUDA_SUCCESS);
    std::thread([&] {
      CUcontext current = nullptr;
      EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr);
      EXPECT(cuEventSynchronize(event) == CUDA_SUCCESS);
      EXPECT(words[0] == i && words[31] == i);
      EXPECT(cuEventQuery(event) == CUDA_SUCCESS);
      EXPECT(cuEventDestroy(event) == CUDA_SUCCESS);
      EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr);
    }).join();
  }
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFreeHost(const_cast<int*>(words)));
  return verdict();
}
