// A plain memset of memory that the host reads returns when it has ended: pinned, registered and
// managed memory. The kernel before it takes some time.
// conformance: judges=itself flags=-lcuda
#include <cuda.h>

#include <algorithm>
#include <cstdlib>

#include "expect.h"

namespace {

constexpr size_t kBytes = 1 << 20;

__global__ void delay(long long nanoseconds) {
  long long begin = 0, now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    __nanosleep(1000);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - begin < nanoseconds);
}

bool all(const unsigned char* memory, size_t bytes, unsigned char value) {
  return std::all_of(memory, memory + bytes, [=](unsigned char each) { return each == value; });
}

void check(unsigned char* host, unsigned char* device) {
  const auto address = reinterpret_cast<CUdeviceptr>(device);
  std::fill_n(host, kBytes, 1);
  delay<<<1, 1>>>(20'000'000);
  EXPECT_OK(cudaMemset(device, 7, kBytes));
  EXPECT(all(host, kBytes, 7));
  delay<<<1, 1>>>(20'000'000);
  EXPECT(cuMemsetD8(address + 3, 9, 100) == CUDA_SUCCESS);
  EXPECT(all(host + 3, 100, 9) && host[2] == 7 && host[103] == 7);
  delay<<<1, 1>>>(20'000'000);
  EXPECT(cuMemsetD2D32(address + 4096, 512, 0x0b0b0b0b, 2, 3) == CUDA_SUCCESS);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT(all(host + 4096 + row * 512, 8, 0x0b));
    EXPECT(host[4096 + row * 512 + 8] == 7);
  }
}

}  // namespace

int main() {
  unsigned char *host = nullptr, *device = nullptr;
  EXPECT_OK(cudaHostAlloc(&host, kBytes, cudaHostAllocMapped));
  EXPECT_OK(cudaHostGetDevicePointer(&device, host, 0));
  check(host, device);
  EXPECT_OK(cudaFreeHost(host));

  host = static_cast<unsigned char*>(std::aligned_alloc(4096, kBytes));
  EXPECT_OK(cudaHostRegister(host, kBytes, cudaHostRegisterMapped));
  EXPECT_OK(cudaHostGetDevicePointer(&device, host, 0));
  check(host, device);
  EXPECT_OK(cudaHostUnregister(host));
  std::free(host);

  EXPECT_OK(cudaMallocManaged(&host, kBytes));
  check(host, host);
  EXPECT_OK(cudaFree(host));
  return verdict();
}
