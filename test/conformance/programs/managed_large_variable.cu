// A large __managed__ variable of which each side changes a few places: all of them, and nothing else, reach the other side.
// conformance: judges=itself
#include <fcntl.h>
#include <unistd.h>

#include <random>
#include <thread>
#include <vector>

#include "expect.h"

constexpr unsigned kCount = 4 << 20;

__managed__ unsigned before[100];
__managed__ unsigned values[kCount];
__managed__ unsigned after[100];
__device__ unsigned different;

__global__ void compare(unsigned round) {
  const unsigned stride = gridDim.x * blockDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < kCount; i += stride) {
    if (values[i] % 1000 != 0 && values[i] % 1000 != round) atomicAdd(&different, 1u);
    if (values[i] % 1000 == round) values[i] -= round;
  }
}

__global__ void change(const unsigned* places, unsigned count, unsigned by) {
  for (unsigned i = 0; i < count; ++i) values[places[i]] += by;
  ++before[99];
  ++after[0];
}

static std::vector<unsigned> model(kCount);
static std::mt19937 generator(1);

static bool same() { return std::memcmp(values, model.data(), sizeof values) == 0; }

static unsigned found() {
  unsigned count = 0, none = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&count, different, sizeof count));
  EXPECT_OK(cudaMemcpyToSymbol(different, &none, sizeof none));
  return count;
}

/// The host adds the round to a few values, and the device takes it off again.
static void fromHost(unsigned round) {
  for (int i = 0; i < 20; ++i) {
    unsigned& value = values[generator() % kCount];
    if (value % 1000 == 0) value += round;
  }
  compare<<<64, 256>>>(round);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(same() && found() == 0);
}

static void fromDevice(unsigned* places) {
  for (int i = 0; i < 20; ++i) model[places[i] = generator() % kCount] += 1000;
  change<<<1, 1>>>(places, 20, 1000);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(same());
}

/// The system, and another thread, write for the host.
static void bySystemAndThread() {
  const int zeros = open("/dev/zero", O_RDONLY);
  EXPECT(read(zeros, values + 70'001, 40'000) == 40'000);
  close(zeros);
  std::memset(model.data() + 70'001, 0, 40'000);
  std::thread([] { values[kCount - 1] = model[kCount - 1] = 7'000; }).join();
  compare<<<64, 256>>>(1);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(same() && found() == 0);
  unsigned last = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&last, values, sizeof last, (kCount - 1) * sizeof last));
  EXPECT(last == 7'000);
}

int main() {
  unsigned* places = nullptr;
  EXPECT_OK(cudaMallocManaged(&places, 20 * sizeof *places));
  for (unsigned i = 0; i < kCount; ++i) values[i] = model[i] = i % 4'000'000 * 1000;
  compare<<<64, 256>>>(1);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(same() && found() == 0);
  for (unsigned round = 1; round < 6; ++round) {
    fromHost(round);
    fromDevice(places);
  }
  bySystemAndThread();
  EXPECT(before[99] == 5 && after[0] == 5);
  EXPECT_OK(cudaFree(places));
  return verdict();
}
