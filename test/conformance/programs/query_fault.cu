// A kernel of another stream fails: queries of an event and of a stream that were done all the time say so too.
// conformance: judges=itself
#include <chrono>
#include <thread>

#include "expect.h"

__global__ void write(int* where) { *where = 1; }

int main() {
  cudaStream_t idle = nullptr, failing = nullptr;
  cudaEvent_t event = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&idle, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&failing, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  EXPECT_OK(cudaEventRecord(event, idle));
  EXPECT_OK(cudaStreamSynchronize(idle));
  for (int i = 0; i < 1000; ++i) EXPECT(cudaEventQuery(event) == cudaSuccess && cudaStreamQuery(idle) == cudaSuccess);
  write<<<1, 1, 0, failing>>>(reinterpret_cast<int*>(0x40));
  // The answers until then may be either.
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(500);
  while (std::chrono::steady_clock::now() < end) (void)cudaEventQuery(event), (void)cudaStreamQuery(idle);
  EXPECT(cudaEventQuery(event) == cudaErrorIllegalAddress);
  EXPECT(cudaStreamQuery(idle) == cudaErrorIllegalAddress);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT(cudaEventQuery(event) == cudaErrorIllegalAddress);
  return verdict();
}
