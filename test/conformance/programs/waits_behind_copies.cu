// Small copies from ordinary memory, then waits: for kernels of another thread too, in streams that do not wait for the default stream, and in a second context.
// conformance: judges=itself
#include <atomic>
#include <thread>

#include "expect.h"

__global__ void addOne(unsigned* at) { ++*at; }

/// A kernel of another thread, launched after the copy, is waited for although the copy has ended.
static void handedOver() {
  unsigned* device = nullptr;
  cudaStream_t blocking = nullptr, apart = nullptr;
  EXPECT_OK(cudaMalloc(&device, 4096));
  EXPECT_OK(cudaStreamCreate(&blocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  std::atomic<unsigned> turn{0};
  int wrong = 0;
  std::thread other([&] {
    for (unsigned round = 0; round < 200; ++round) {
      while (turn != 2 * round + 1) std::this_thread::yield();
      addOne<<<1, 1, 0, round % 2 ? blocking : nullptr>>>(device);
      wrong += cudaGetLastError() != cudaSuccess;
      turn = 2 * round + 2;
    }
  });
  for (unsigned round = 0; round < 200; ++round) {
    unsigned found = 0;
    for (int again = 0; again < 2; ++again) {  // the second copy follows a wait
      EXPECT_OK(cudaMemcpy(device, &round, 4, cudaMemcpyHostToDevice));
      if (again == 0) EXPECT_OK(cudaDeviceSynchronize());
    }
    turn = 2 * round + 1;
    while (turn != 2 * round + 2) std::this_thread::yield();
    EXPECT_OK(round % 3 ? cudaDeviceSynchronize() : cudaStreamSynchronize(round % 2 ? blocking : nullptr));
    EXPECT_OK(cudaMemcpyAsync(&found, device, 4, cudaMemcpyDeviceToHost, apart));
    EXPECT_OK(cudaStreamSynchronize(apart));
    EXPECT(found == round + 1);
  }
  other.join();
  EXPECT(wrong == 0);
  EXPECT_OK(cudaStreamDestroy(blocking));
  EXPECT_OK(cudaStreamDestroy(apart));
  EXPECT_OK(cudaFree(device));
}

/// A wait right behind a copy has seen it, for a stream that does not wait for the default stream.
static void waitedFor() {
  unsigned* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, 4096));
  cudaStream_t apart = nullptr;
  EXPECT_OK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  EXPECT_OK(cudaDeviceSynchronize());
  for (unsigned round = 0; round < 200; ++round) {
    unsigned found = 0;
    EXPECT_OK(cudaMemcpy(device, &round, 4, cudaMemcpyHostToDevice));
    EXPECT_OK(round % 5 == 4 ? cudaStreamSynchronize(nullptr) : cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpyAsync(&found, device, 4, cudaMemcpyDeviceToHost, apart));
    EXPECT_OK(cudaStreamSynchronize(apart));
    EXPECT(found == round);
  }
  EXPECT_OK(cudaStreamDestroy(apart));
  EXPECT_OK(cudaFree(device));
}

/// A copy to ordinary memory waits for the kernel before it.
static void behindKernels() {
  unsigned* device = nullptr;
  cudaStream_t apart = nullptr;
  EXPECT_OK(cudaMalloc(&device, 4096));
  EXPECT_OK(cudaStreamCreateWithFlags(&apart, cudaStreamNonBlocking));
  EXPECT_OK(cudaMemset(device, 0, 4096));
  EXPECT_OK(cudaDeviceSynchronize());
  for (unsigned round = 0; round < 200; ++round) {
    unsigned found = 0;
    addOne<<<1, 1, 0, apart>>>(device);
    EXPECT_OK(cudaMemcpyAsync(&found, device, 4, cudaMemcpyDeviceToHost, apart));
    EXPECT_OK(cudaStreamSynchronize(apart));
    EXPECT(found == round + 1);
  }
  EXPECT_OK(cudaStreamDestroy(apart));
  EXPECT_OK(cudaFree(device));
}

int main() {
  for (int context = 0; context < 2; ++context) {
    waitedFor();
    handedOver();
    behindKernels();
    EXPECT_OK(cudaDeviceReset());
  }
  return verdict();
}
