// Virtual memory: cuMemUnmap and cuMemRelease do not wait for a kernel in flight. The kernel goes on while it uses other memory, and ends with a fault when it uses the unmapped range.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

/// Reads `at`, tells the host so, waits for the host, and reads `at` again.
__global__ void readTwice(volatile unsigned* words, const volatile unsigned* at) {
  const unsigned before = *at;
  words[1] = 1;
  __threadfence_system();
  while (words[0] == 0) continue;
  words[2] = before + *at;
}

static volatile unsigned* words;
static cudaStream_t stream;

static void begin(CUdeviceptr at) {
  words[0] = words[1] = words[2] = 0;
  readTwice<<<1, 1, 0, stream>>>(words, reinterpret_cast<const unsigned*>(at));
  EXPECT_OK(cudaGetLastError());
  while (words[1] == 0) continue;
}

static cudaError_t end() {
  words[0] = 1;
  return cudaStreamSynchronize(stream);
}

int main() {
  startDriver();
  void* host = nullptr;
  EXPECT_OK(cudaMallocHost(&host, 4096));
  words = static_cast<unsigned*>(host);
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t size = 0;
  EXPECT_OK(cuMemGetAllocationGranularity(&size, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemAccessDesc access{property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr range = 0, other = 0;
  CUmemGenericAllocationHandle first = 0, second = 0;
  EXPECT_OK(cuMemAlloc(&other, 4));
  EXPECT_OK(cuMemAddressReserve(&range, size, 0, 0, 0));
  EXPECT_OK(cuMemCreate(&first, size, &property, 0));
  EXPECT_OK(cuMemCreate(&second, size, &property, 0));
  EXPECT_OK(cuMemMap(range, size, 0, first, 0));
  EXPECT_OK(cuMemSetAccess(range, size, &access, 1));
  EXPECT_OK(cuMemsetD32(range, 20, size / 4));
  EXPECT_OK(cuMemsetD32(other, 30, 1));
  EXPECT_OK(cudaDeviceSynchronize());

  begin(range);
  EXPECT_OK(cuMemRelease(first));  // the mapping keeps the memory
  EXPECT_OK(end());
  EXPECT(words[2] == 40);

  begin(other);
  EXPECT_OK(cuMemUnmap(range, size));
  EXPECT_OK(end());
  EXPECT(words[2] == 60);

  EXPECT_OK(cuMemMap(range, size, 0, second, 0));
  EXPECT_OK(cuMemSetAccess(range, size, &access, 1));
  EXPECT_OK(cuMemsetD32(range, 50, size / 4));
  EXPECT_OK(cudaDeviceSynchronize());
  begin(range);
  EXPECT_OK(cuMemUnmap(range, size));
  EXPECT(end() == cudaErrorIllegalAddress);
  EXPECT(words[2] == 0);
  EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
  EXPECT_OK(cuMemRelease(second));
  EXPECT_OK(cuMemAddressFree(range, size));
  return verdict();
}
