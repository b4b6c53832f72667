// Advice and prefetches of managed memory keep its content, and queries return what was said.
// conformance: judges=itself flags=-lcuda
#include <cuda.h>

#include "expect.h"
#include "show_driver.h"

constexpr int n = 1 << 20;
constexpr std::size_t bytes = n * sizeof(int);

__global__ void addOne(int* data) { data[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

static bool all(const int* data, int value) {
  for (int i = 0; i < n; ++i) {
    if (data[i] != value) return false;
  }
  return true;
}

static int ask(const int* data, std::size_t size, CUmem_range_attribute attribute) {
  int value = 12345;
  EXPECT(cuMemRangeGetAttribute(&value, sizeof value, attribute, reinterpret_cast<CUdeviceptr>(data), size) == CUDA_SUCCESS);
  return value;
}

static CUmemLocation at(CUmemLocationType type) {
  CUmemLocation location{};
  location.type = type;
  return location;
}
static const CUmemLocation onDevice = at(CU_MEM_LOCATION_TYPE_DEVICE);
static const CUmemLocation onHost = at(CU_MEM_LOCATION_TYPE_HOST);

static void prefetches(int* data, CUdeviceptr address) {
  for (int i = 0; i < n; ++i) data[i] = 1;
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
  EXPECT(cuMemPrefetchAsync(address, bytes, onDevice, 0, nullptr) == CUDA_SUCCESS);
  addOne<<<n / 256, 256>>>(data);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE) == CU_MEM_LOCATION_TYPE_DEVICE);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID) == 0);
  EXPECT(all(data, 2));
  EXPECT(cuMemPrefetchAsync(address, bytes / 2, onHost, 0, nullptr) == CUDA_SUCCESS);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(ask(data, bytes / 2, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_CPU);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_INVALID);
  EXPECT(all(data, 2));
  EXPECT_OK(cudaMemPrefetchAsync(data, bytes, {cudaMemLocationTypeHost, 0}, 0, nullptr));
  addOne<<<n / 256, 256>>>(data);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(all(data, 3));
}

static void advice(int* data, CUdeviceptr address) {
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, onDevice) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 1);
  EXPECT(cuMemAdvise(address, 4096, CU_MEM_ADVISE_UNSET_READ_MOSTLY, onDevice) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY) == 0);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_UNSET_READ_MOSTLY, onDevice) == CUDA_SUCCESS);

  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, onHost) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, onDevice) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == 0);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION, onDevice) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_INVALID);

  int devices[3] = {5, 5, 5};
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, onDevice) == CUDA_SUCCESS);
  EXPECT(cuMemRangeGetAttribute(devices, sizeof devices, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, address, bytes) == CUDA_SUCCESS);
  EXPECT(devices[0] == 0 && devices[1] == CU_DEVICE_INVALID && devices[2] == CU_DEVICE_INVALID);
  EXPECT(cuMemAdvise(address, bytes, CU_MEM_ADVISE_UNSET_ACCESSED_BY, onDevice) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) == CU_DEVICE_INVALID);
  EXPECT(all(data, 3));
}

static void many(int* data, CUdeviceptr address) {
  int readMostly = 7, preferred = 7;
  void* values[] = {&readMostly, &preferred};
  std::size_t sizes[] = {4, 4};
  CUmem_range_attribute attributes[] = {CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION};
  EXPECT(cuMemRangeGetAttributes(values, sizes, attributes, 2, address, bytes) == CUDA_SUCCESS);
  EXPECT(readMostly == 0 && preferred == CU_DEVICE_INVALID);
  CUdeviceptr begins[] = {address, address + bytes / 2};
  std::size_t halves[] = {bytes / 2, bytes / 2};
  CUmemLocation locations[] = {onDevice, onHost};
  std::size_t firsts[] = {0, 1};
  cudaStream_t stream = nullptr;
  EXPECT_OK(cudaStreamCreate(&stream));
  EXPECT(cuMemPrefetchBatchAsync(begins, halves, 2, locations, firsts, 2, 0, stream) == CUDA_SUCCESS);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(ask(data, bytes / 2, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
  EXPECT(ask(data + n / 2, bytes / 2, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == CU_DEVICE_CPU);
  EXPECT(all(data, 3));
  EXPECT(cuMemDiscardBatchAsync(begins, halves, 2, 0, stream) == CUDA_SUCCESS);
  EXPECT(cuMemDiscardAndPrefetchBatchAsync(begins, halves, 2, locations, firsts, 2, 0, stream) == CUDA_SUCCESS);
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < n; ++i) data[i] = 8;  // the content was lost; what comes now stays
  addOne<<<n / 256, 256, 0, stream>>>(data);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(all(data, 9));
  EXPECT_OK(cudaStreamDestroy(stream));
}

static void oldCalls(int* data, CUdeviceptr address) {
  using Prefetch = CUresult (*)(CUdeviceptr, std::size_t, CUdevice, CUstream);
  using Advise = CUresult (*)(CUdeviceptr, std::size_t, CUmem_advise, CUdevice);
  void *prefetch = nullptr, *advise = nullptr;
  EXPECT(cuGetProcAddress("cuMemPrefetchAsync", &prefetch, 8000, 0, nullptr) == CUDA_SUCCESS);
  EXPECT(cuGetProcAddress("cuMemAdvise", &advise, 8000, 0, nullptr) == CUDA_SUCCESS);
  EXPECT(reinterpret_cast<Prefetch>(prefetch)(address, bytes, 0, nullptr) == CUDA_SUCCESS);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION) == 0);
  EXPECT(reinterpret_cast<Advise>(advise)(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, CU_DEVICE_CPU) == CUDA_SUCCESS);
  EXPECT(ask(data, bytes, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION) == CU_DEVICE_CPU);
  EXPECT(all(data, 9));
}

static void errors(CUdeviceptr address) {
  int value = 0;
  CUmemLocation missing = onDevice;
  missing.id = 1000;
  CUdeviceptr device = 0;
  EXPECT(cuMemAlloc(&device, 4096) == CUDA_SUCCESS);
  SHOW(cuMemPrefetchAsync(device, 4096, onDevice, 0, nullptr));
  SHOW(cuMemPrefetchAsync(address, bytes + 4096 * 1024, onDevice, 0, nullptr));
  SHOW(cuMemPrefetchAsync(address, 0, onDevice, 0, nullptr));
  SHOW(cuMemPrefetchAsync(address, bytes, missing, 0, nullptr));
  SHOW(cuMemPrefetchAsync(address, bytes, onDevice, 1, nullptr));
  SHOW(cuMemAdvise(address, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, missing));
  SHOW(cuMemAdvise(address, 0, CU_MEM_ADVISE_SET_READ_MOSTLY, onDevice));
  SHOW(cuMemAdvise(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, onDevice));
  SHOW(cuMemAdvise(address, bytes, static_cast<CUmem_advise>(99), onDevice));
  SHOW(cuMemRangeGetAttribute(&value, 2, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, address, bytes));
  SHOW(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, device, 4096));
  SHOW(cuMemRangeGetAttribute(&value, 4, static_cast<CUmem_range_attribute>(99), address, bytes));
}

int main() {
  int* data = nullptr;
  EXPECT_OK(cudaMallocManaged(&data, bytes));
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  prefetches(data, address);
  advice(data, address);
  many(data, address);
  oldCalls(data, address);
  errors(address);
  EXPECT_OK(cudaFree(data));
  return verdict();
}
