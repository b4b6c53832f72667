// Mapped memory while its context is reset: its content, its address and its handle.
// conformance: flags=-lcuda
#include "show_driver.h"

int main() {
  CUcontext context = nullptr;
  SHOW(cuInit(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t granularity = 0;
  SHOW(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr at = 0, plain = 0;
  SHOW(cuMemCreate(&handle, granularity, &properties, 0));
  SHOW(cuMemAddressReserve(&at, granularity, 0, 0, 0));
  SHOW(cuMemMap(at, granularity, 0, handle, 0));
  CUmemAccessDesc access{};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SHOW(cuMemSetAccess(at, granularity, &access, 1));
  SHOW(cuMemsetD32(at, 0x12345678, granularity / 4));
  SHOW(cuMemAlloc(&plain, granularity));
  SHOW(cuDevicePrimaryCtxReset(0));

  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  unsigned word = 0;
  SHOW(cuMemcpyDtoH(&word, at, sizeof word));
  std::printf("mapped memory has its content: %s\n", yesNo(word == 0x12345678));
  SHOW(cuMemcpyDtoH(&word, plain, sizeof word));
  SHOW(cuMemUnmap(at, granularity));
  SHOW(cuMemRelease(handle));
  SHOW(cuMemAddressFree(at, granularity));
}
