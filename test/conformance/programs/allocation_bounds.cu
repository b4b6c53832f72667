// Memory of cuMemAlloc ends exactly where it was asked to, though the driver rounds: copies and memsets up to its last byte
// and beyond; and it is no mapping of a program's own.
// conformance: flags=-lcuda
#include <vector>

#include "show_driver.h"

static std::vector<char> host(8 << 20);

static void bounds(const char* what, CUdeviceptr memory, std::size_t bytes) {
  std::printf("%s, %zu bytes\n", what, bytes);
  SHOW(cuMemcpyHtoD(memory, host.data(), bytes));
  SHOW(cuMemcpyHtoD(memory, host.data(), bytes + 1));
  SHOW(cuMemcpyHtoD(memory + bytes - 1, host.data(), 1));
  SHOW(cuMemcpyHtoD(memory + bytes - 1, host.data(), 2));
  SHOW(cuMemcpyHtoDAsync(memory, host.data(), bytes + 1, nullptr));
  SHOW(cuMemcpyDtoH(host.data(), memory, bytes + 1));
  SHOW(cuMemcpyDtoH(host.data(), memory + bytes / 2, bytes));
  SHOW(cuMemcpyDtoHAsync(host.data(), memory, bytes + 1, nullptr));
  SHOW(cuMemcpyDtoD(memory, memory + bytes / 2, bytes - bytes / 2));
  SHOW(cuMemcpyDtoD(memory, memory + bytes / 2, bytes - bytes / 2 + 1));
  SHOW(cuMemsetD8(memory, 1, bytes));
  SHOW(cuMemsetD8(memory, 1, bytes + 1));
  SHOW(cuMemsetD8Async(memory + bytes - 1, 1, 2, nullptr));
  SHOW(cuMemsetD2D8(memory, bytes / 2, 1, 4, 2));
  SHOW(cuMemsetD2D8(memory, bytes / 2, 1, bytes / 2, 3));
  CUdeviceptr start = 0;
  std::size_t size = 0;
  SHOW(cuMemGetAddressRange(&start, &size, memory + bytes - 1));
  std::printf("start %s, %zu bytes\n", yesNo(start == memory), size);
  SHOW(cuCtxSynchronize());
}

static void notMapped(CUdeviceptr memory) {
  constexpr std::size_t kPage = 2 << 20;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access{property.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned long long flags = 77;
  SHOW(cuMemCreate(&handle, kPage, &property, 0));
  SHOW(cuMemMap(memory, kPage, 0, handle, 0));
  SHOW(cuMemRelease(handle));
  SHOW(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(memory)));
  SHOW(cuMemGetAccess(&flags, &access.location, memory));
  std::printf("access %llu\n", flags);
  SHOW(cuMemSetAccess(memory, kPage, &access, 1));
  SHOW(cuMemUnmap(memory, kPage));
  SHOW(cuMemAddressFree(memory, kPage));
}

int main() {
  CUcontext context = nullptr;
  CUdeviceptr small[3] = {}, large = 0, none = 7;
  SHOW(cuInit(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  for (auto& memory : small) SHOW(cuMemAlloc(&memory, 100));
  std::printf("aligned to 256 bytes: %s\n", yesNo(small[0] % 256 == 0 && small[1] % 256 == 0 && small[2] % 256 == 0));
  SHOW(cuMemAlloc(&large, 3 << 20));
  SHOW(cuMemAlloc(&none, 0));
  bounds("small memory", small[0], 100);
  bounds("large memory", large, 3 << 20);
  notMapped(large);
  SHOW(cuMemFree(small[0] + 1));
  SHOW(cuMemFree(large + (1 << 20)));
  for (const auto memory : small) SHOW(cuMemFree(memory));
  SHOW(cuMemFree(small[1]));
  SHOW(cuMemcpyHtoD(small[1], host.data(), 100));
  SHOW(cuMemFree(large));
  SHOW(cuMemsetD8(large, 0, 1));
  SHOW(cuMemFree(0));
}
