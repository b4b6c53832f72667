// Small copies from and to ordinary memory in a row: with and without work beside them, from many threads, to memory that the program reads itself, and with wrong addresses.
// conformance: judges=itself
#include <cstring>
#include <thread>
#include <vector>

#include "expect.h"

__global__ void addOne(unsigned* at, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) ++at[i];
}

static const std::size_t kSizes[] = {1, 4, 100, 4096, 65532, 65536, 65540, 200000};

static std::vector<unsigned> numbers(std::size_t bytes, unsigned first) {
  std::vector<unsigned> made(bytes / 4 + 1);
  for (unsigned& one : made) one = first++;
  return made;
}

/// The source may change as soon as the call returns.
static void backAndForth(unsigned* device) {
  for (const std::size_t bytes : kSizes) {
    for (unsigned round = 0; round < 20; ++round) {
      std::vector<unsigned> source = numbers(bytes, round * 7), expected = source, found(source.size());
      EXPECT_OK(cudaMemcpy(device, source.data(), bytes, cudaMemcpyHostToDevice));
      std::memset(source.data(), 0xff, source.size() * 4);
      if (round % 3 == 1) EXPECT_OK(cudaDeviceSynchronize());
      EXPECT_OK(cudaMemcpy(found.data(), device, bytes, cudaMemcpyDeviceToHost));
      EXPECT(std::memcmp(found.data(), expected.data(), bytes) == 0);
    }
  }
}

/// Copies in a row with nothing else under way, then kernels in several streams.
static void rows(unsigned* device) {
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  for (unsigned round = 0; round < 100; ++round) {
    EXPECT_OK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 16; ++i) EXPECT_OK(cudaMemcpy(device + i, &round, 4, cudaMemcpyHostToDevice));
    addOne<<<1, 32, 0, round % 2 ? stream : nullptr>>>(device, 16);
    unsigned found[16] = {};
    EXPECT_OK(cudaMemcpy(found, device, sizeof found, cudaMemcpyDeviceToHost));
    for (const unsigned one : found) EXPECT(one == round + 1);
  }
  EXPECT_OK(cudaStreamDestroy(stream));
}

/// Memory that the program reads without another call.
static void visible() {
  unsigned *managed = nullptr, *pinned = nullptr, *mapped = nullptr;
  EXPECT_OK(cudaMallocManaged(&managed, 4096));
  EXPECT_OK(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped));
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  for (unsigned round = 1; round <= 200; ++round) {
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(managed, &round, 4, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(*managed == round);
    const unsigned other = round * 3;
    EXPECT_OK(cudaMemcpy(mapped, &other, 4, cudaMemcpyHostToDevice));
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(*static_cast<volatile unsigned*>(pinned) == other);
  }
  EXPECT_OK(cudaFree(managed));
  EXPECT_OK(cudaFreeHost(pinned));
}

static void threads() {
  std::vector<std::thread> all;
  int wrong[6] = {};
  for (int& mine : wrong) {
    all.emplace_back([&mine] {
      unsigned* device = nullptr;
      mine += cudaMalloc(&device, 4096) != cudaSuccess;
      for (unsigned round = 0; round < 300; ++round) {
        unsigned found = 0;
        if (round % 4 == 0) mine += cudaDeviceSynchronize() != cudaSuccess;
        mine += cudaMemcpy(device, &round, 4, cudaMemcpyHostToDevice) != cudaSuccess;
        addOne<<<1, 1>>>(device, 1);
        mine += cudaMemcpy(&found, device, 4, cudaMemcpyDeviceToHost) != cudaSuccess;
        mine += found != round + 1;
      }
      mine += cudaFree(device) != cudaSuccess;
    });
  }
  for (auto& one : all) one.join();
  for (const int one : wrong) EXPECT(one == 0);
}

/// Refused at once, with nothing under way too.
static void refused(unsigned* device) {
  unsigned value = 5, found = 0;
  for (int round = 0; round < 3; ++round) {
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT_OK(cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice));
    EXPECT(cudaMemcpy(reinterpret_cast<void*>(0x40), &value, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(&value, reinterpret_cast<void*>(0x40), 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    (void)cudaGetLastError();
    EXPECT_OK(cudaMemcpy(&found, device, 4, cudaMemcpyDeviceToHost));
    EXPECT(found == 5);
  }
}

int main() {
  unsigned* device = nullptr;
  EXPECT_OK(cudaMalloc(&device, 1 << 20));
  backAndForth(device);
  rows(device);
  visible();
  threads();
  refused(device);
  EXPECT_OK(cudaFree(device));
  return verdict();
}
