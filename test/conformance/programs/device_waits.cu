// cudaDeviceSynchronize behind launches: it waits for work of each stream and thread, whatever ran before.
// conformance: judges=itself
#include <atomic>
#include <thread>

#include "expect.h"

constexpr int kRounds = 200;
constexpr int kYields = 2000;

__global__ void store(volatile int* at, int value) { *at = value; }
__global__ void storeSlowly(volatile int* at, int value) {
  for (int i = 0; i < 2000; ++i) *at = -i;
  *at = value;
}

static std::atomic<bool> open{false};
static void CUDART_CB waitUntilOpen(void*) {
  while (!open) std::this_thread::yield();
}

static volatile int* words;
static cudaStream_t other;

/// The other stream's work ends some time after the wait has begun.
static void waitBesideClosedStream(void (*launch)()) {
  open = false;
  std::atomic<bool> waits{false};
  std::thread opens([&] {
    while (!waits) std::this_thread::yield();
    for (int i = 0; i < kYields; ++i) std::this_thread::yield();
    open = true;
  });
  EXPECT_OK(cudaDeviceSynchronize());
  launch();
  waits = true;
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(open);
  opens.join();
}

static void legacyThenOther() {
  store<<<1, 1>>>(words, 1);
  EXPECT_OK(cudaLaunchHostFunc(other, waitUntilOpen, nullptr));
}
static void otherThenLegacy() {
  EXPECT_OK(cudaLaunchHostFunc(other, waitUntilOpen, nullptr));
  store<<<1, 1>>>(words, 1);
}
static void legacyBesideThread() {
  store<<<1, 1>>>(words, 1);
  std::thread([] { EXPECT_OK(cudaLaunchHostFunc(other, waitUntilOpen, nullptr)); }).join();
  store<<<1, 1>>>(words, 2);
}

int main() {
  EXPECT_OK(cudaHostAlloc(const_cast<int**>(&words), 4 * sizeof(int), cudaHostAllocMapped));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  store<<<1, 1, 0, other>>>(words, 0);
  int* memory = nullptr;
  EXPECT_OK(cudaMalloc(&memory, sizeof(int)));
  for (int i = 1; i <= kRounds; ++i) {
    for (int more = 0; more < i % 3; ++more) store<<<1, 1>>>(words, -i);
    storeSlowly<<<1, 1>>>(words, i);
    if (i % 5 == 0) EXPECT_OK(cudaMemcpy(memory, &i, sizeof i, cudaMemcpyHostToDevice));
    if (i % 7 == 0) {
      int copied = 0;
      EXPECT_OK(cudaMemcpy(&copied, const_cast<int*>(words), sizeof copied, cudaMemcpyDefault));
      EXPECT(copied == i);
    }
    if (i % 4 == 0) storeSlowly<<<1, 1, 0, other>>>(words + 1, i);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(words[0] == i);
    EXPECT(words[1] == (i / 4 * 4));
  }
  for (int i = 0; i < 10; ++i) {
    waitBesideClosedStream(legacyThenOther);
    waitBesideClosedStream(otherThenLegacy);
    waitBesideClosedStream(legacyBesideThread);
  }
  return verdict();
}
