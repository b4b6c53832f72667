// Two GPUs: kernels that use the other GPU's memory, copies between them, pools and mappings for both, and the fault without access.
// conformance: judges=itself gpus=2 flags=-lcuda
#include <vector>

#include "expect.h"
#include "show_driver.h"

#define DRIVER_OK(call) EXPECT(call == CUDA_SUCCESS)

namespace {

constexpr int kCount = 1 << 16;
constexpr std::size_t kBytes = kCount * sizeof(int);

__global__ void add(const int* from, int* to, int value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kCount) to[i] = from[i] + value;
}

/// Runs on the current GPU. Which error a kernel ends with is the caller's to judge.
cudaError_t run(const int* from, int* to, int value) {
  add<<<kCount / 256, 256>>>(from, to, value);
  return cudaDeviceSynchronize();
}

int* numbersOn(int device, int first) {
  std::vector<int> host(kCount);
  for (int i = 0; i < kCount; ++i) host[i] = first + i;
  int* memory = nullptr;
  EXPECT_OK(cudaSetDevice(device));
  EXPECT_OK(cudaMalloc(&memory, kBytes));
  EXPECT_OK(cudaMemcpy(memory, host.data(), kBytes, cudaMemcpyHostToDevice));
  return memory;
}

bool holds(const int* memory, int first) {
  std::vector<int> host(kCount);
  EXPECT_OK(cudaMemcpy(host.data(), memory, kBytes, cudaMemcpyDefault));
  for (int i = 0; i < kCount; ++i)
    if (host[i] != first + i) return false;
  return true;
}

void questions() {
  int can = 0, value = 0;
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  EXPECT(can == 1);
  EXPECT_OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  EXPECT(can == 0);
  EXPECT(cudaDeviceCanAccessPeer(&can, 0, 99) == cudaErrorInvalidDevice);
  EXPECT_OK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
  EXPECT(value == 1);
  EXPECT(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 0) != cudaSuccess);
  cudaGetLastError();
}

void kernels(int* mine, int* theirs) {
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceEnablePeerAccess(1, 0));
  EXPECT(cudaDeviceEnablePeerAccess(1, 0) == cudaErrorPeerAccessAlreadyEnabled);
  SHOW(cudaDeviceEnablePeerAccess(0, 0));
  cudaGetLastError();
  EXPECT_OK(run(theirs, mine, 5));
  EXPECT(holds(mine, 1005));
  EXPECT_OK(run(mine, theirs, 5));
  EXPECT(holds(theirs, 1010));
}

void copies(int* mine, int* theirs) {
  int* copy = numbersOn(1, 0);
  EXPECT_OK(cudaMemcpyPeer(copy, 1, mine, 0, kBytes));
  EXPECT(holds(copy, 1005));
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemcpyPeerAsync(mine, 0, theirs, 1, kBytes, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(holds(mine, 1010));
  EXPECT_OK(cudaMemcpy(copy, mine, kBytes, cudaMemcpyDefault));
  EXPECT(holds(copy, 1010));
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(copy));
}

void pools(int* mine) {
  cudaMemPool_t pool = nullptr;
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&pool, 1));
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, 0};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  EXPECT_OK(cudaMemPoolSetAccess(pool, &access, 1));
  cudaMemAccessFlags flags = cudaMemAccessFlagsProtNone;
  cudaMemLocation location = access.location;
  EXPECT_OK(cudaMemPoolGetAccess(&flags, pool, &location));
  EXPECT(flags == cudaMemAccessFlagsProtReadWrite);
  EXPECT_OK(cudaSetDevice(1));
  int* pooled = nullptr;
  EXPECT_OK(cudaMallocAsync(&pooled, kBytes, nullptr));
  EXPECT_OK(cudaStreamSynchronize(nullptr));
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(run(mine, pooled, 1));
  EXPECT(holds(pooled, 1011));
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(cudaFreeAsync(pooled, nullptr));
  EXPECT_OK(cudaStreamSynchronize(nullptr));
}

/// Memory of GPU 1, mapped for both.
void mappings(int* mine) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 1;
  std::size_t size = 0;
  DRIVER_OK(cuMemGetAllocationGranularity(&size, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  DRIVER_OK(cuMemCreate(&handle, size, &properties, 0));
  DRIVER_OK(cuMemAddressReserve(&address, size, 0, 0, 0));
  DRIVER_OK(cuMemMap(address, size, 0, handle, 0));
  CUmemAccessDesc access[2]{};
  for (int device = 0; device < 2; ++device) {
    access[device].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[device].location.id = device;
    access[device].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  DRIVER_OK(cuMemSetAccess(address, size, access, 2));
  unsigned long long flags = 0;
  DRIVER_OK(cuMemGetAccess(&flags, &access[0].location, address));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(run(mine, reinterpret_cast<int*>(address), 2));
  EXPECT_OK(cudaSetDevice(1));
  EXPECT_OK(run(reinterpret_cast<int*>(address), reinterpret_cast<int*>(address), 3));
  EXPECT(holds(reinterpret_cast<int*>(address), 1015));
  DRIVER_OK(cuMemUnmap(address, size));
  DRIVER_OK(cuMemAddressFree(address, size));
  DRIVER_OK(cuMemRelease(handle));
}

void withoutAccess(int* mine, int* theirs) {
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaDeviceDisablePeerAccess(1));
  EXPECT(cudaDeviceDisablePeerAccess(1) == cudaErrorPeerAccessNotEnabled);
  cudaGetLastError();
  EXPECT_OK(cudaMemcpyPeer(mine, 0, theirs, 1, kBytes));  // needs no access
  EXPECT(holds(mine, 1010));
  EXPECT(run(theirs, mine, 0) == cudaErrorIllegalAddress);
}

}  // namespace

int main() {
  int count = 0;
  EXPECT_OK(cudaGetDeviceCount(&count));
  if (count < 2) return std::printf("skipped: it needs two GPUs\n"), 0;
  questions();
  int *mine = numbersOn(0, 0), *theirs = numbersOn(1, 1000);
  kernels(mine, theirs);
  copies(mine, theirs);
  pools(mine);
  mappings(mine);
  withoutAccess(mine, theirs);
  return verdict();
}
