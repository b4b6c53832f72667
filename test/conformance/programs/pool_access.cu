// The memory pool of a GPU may be replaced, and a pool says who may access it.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

int main() {
  startDriver();
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool first = nullptr, own = nullptr, found = nullptr;
  EXPECT_OK(cuDeviceGetMemPool(&first, 0));
  EXPECT_OK(cuMemPoolCreate(&own, &properties));
  EXPECT_OK(cuDeviceSetMemPool(0, own));
  EXPECT_OK(cuDeviceGetMemPool(&found, 0));
  EXPECT(found == own && found != first);

  CUmemLocation location{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  EXPECT_OK(cuMemPoolGetAccess(&flags, own, &location));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUmemAccessDesc access{location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_OK(cuMemPoolSetAccess(own, &access, 1));

  CUdeviceptr memory = 0;
  CUmemoryPool of = nullptr;
  EXPECT_OK(cuMemAllocAsync(&memory, 4096, nullptr));
  EXPECT_OK(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
  EXPECT(of == own);
  EXPECT_OK(cuMemsetD32Async(memory, 5, 1024, nullptr));
  EXPECT(valueAt(memory + 4092) == 5);
  EXPECT_OK(cuMemFreeAsync(memory, nullptr));
  EXPECT_OK(cuStreamSynchronize(nullptr));

  EXPECT_OK(cuMemPoolDestroy(own));
  EXPECT_OK(cuDeviceGetMemPool(&found, 0));
  EXPECT(found == first);
  return verdict();
}
