// A stream that a thread has waited for is done, whoever asks first: this thread or another one.
// conformance: judges=itself
#include <atomic>
#include <thread>

#include "expect.h"

constexpr int kRounds = 2000;

__global__ void store(volatile int* at, int value) { *at = value; }

static void launchAndWait(cudaStream_t stream, volatile int* word, int value, bool copies) {
  store<<<1, 1, 0, stream>>>(word, value);
  int copied = 0;
  if (copies)
    EXPECT_OK(cudaMemcpyAsync(&copied, const_cast<int*>(word), sizeof copied, cudaMemcpyDefault,
                              stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(*word == value && (!copies || copied == value));
}

int main() {
  cudaStream_t stream = nullptr;
  volatile int* word = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaHostAlloc(const_cast<int**>(&word), sizeof *word, cudaHostAllocMapped));
  std::atomic<int> waited{0}, asked{0};
  std::thread asks([&] {
    for (int round = 1; round <= kRounds; ++round) {
      while (waited != round) std::this_thread::yield();
      EXPECT(cudaStreamQuery(stream) == cudaSuccess);
      asked = round;
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    const bool copies = round % 4 == 0;
    launchAndWait(stream, word, 2 * round, copies);
    EXPECT(cudaStreamQuery(stream) == cudaSuccess);
    launchAndWait(stream, word, 2 * round + 1, copies);
    waited = round;
    while (asked != round) std::this_thread::yield();
  }
  asks.join();
  return verdict();
}
