// Hundreds of launches, each with a wait behind it: what the kernel wrote is there, each time, and
// an error is told by the wait that it belongs to.
// conformance: judges=itself
#include <thread>

#include "expect.h"

constexpr int kWaits = 300;

__global__ void write(volatile int* words, int value) { words[threadIdx.x] = value; }
__global__ void fault(int* nowhere) { *nowhere = 1; }

static void wait(volatile int* words, bool own) {
  cudaStream_t stream = nullptr;
  if (own) EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int i = 1; i <= kWaits; ++i) {
    for (int more = 0; more < i % 3; ++more) write<<<1, 32, 0, stream>>>(words, -i);
    write<<<1, 32, 0, stream>>>(words, i);
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(words[0] == i && words[31] == i);
  }
}

int main() {
  volatile int* words = nullptr;
  EXPECT_OK(cudaHostAlloc(const_cast<int**>(&words), 3 * 128, cudaHostAllocMapped));
  wait(words, false);
  wait(words, true);
  std::thread one([&] { wait(words + 32, true); }), other([&] { wait(words + 64, true); });
  one.join();
  other.join();

  // A launch that is refused does not spoil the wait.
  write<<<1, 4096>>>(words, 0);
  EXPECT(cudaGetLastError() != cudaSuccess);
  wait(words, false);

  write<<<1, 32>>>(words, 5);
  fault<<<1, 1>>>(nullptr);
  EXPECT(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
  EXPECT(cudaStreamSynchronize(nullptr) == cudaErrorIllegalAddress);
  return verdict();
}
