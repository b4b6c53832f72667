// Threads that wait for streams of their own, and for one into which another thread has launched.
// conformance: flags="-std=c++20" judges=itself
#include <barrier>
#include <thread>
#include <vector>

#include "expect.h"

__global__ void count(volatile int* counter) { *counter = *counter + 1; }

constexpr int kThreads = 6, kRounds = 40, kLaunches = 60;

/// Each round ends when the stream of this thread has done all of it, whatever the others do.
static void waitForOwn(volatile int* counter) {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < kLaunches; ++i) count<<<1, 1, 0, stream>>>(const_cast<int*>(counter));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(*counter == round * kLaunches);
  }
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void inOwnStreams(int* counters) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(waitForOwn, counters + i);
  for (std::thread& thread : threads) thread.join();
}

/// Two threads launch into one stream by turns, and the one that did not launch waits for it.
static void byTurns(volatile int* counter, cudaStream_t stream) {
  std::barrier launched(2), seen(2);
  const auto play = [&](int self) {
    for (int round = 1; round <= kRounds; ++round) {
      const bool launches = round / 3 % 2 == self;
      for (int i = 0; launches && i < kLaunches; ++i)
        count<<<1, 1, 0, stream>>>(const_cast<int*>(counter));
      launched.arrive_and_wait();
      if (!launches) {
        EXPECT_OK(cudaStreamSynchronize(stream));
        EXPECT(*counter == round * kLaunches);
      }
      seen.arrive_and_wait();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
}

int main() {
  int* counters = nullptr;
  EXPECT_OK(cudaHostAlloc(reinterpret_cast<void**>(&counters), kThreads * sizeof(int),
                          cudaHostAllocMapped));
  for (int i = 0; i < kThreads; ++i) counters[i] = 0;
  inOwnStreams(counters);
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  counters[0] = 0;
  byTurns(counters, stream);
  counters[0] = 0;
  byTurns(counters, cudaStreamLegacy);
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFreeHost(counters));
  return verdict();
}
