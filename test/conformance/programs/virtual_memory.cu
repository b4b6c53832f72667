// Virtual memory management: one physical allocation at two addresses, access, and what may not be done.
// conformance: flags=-lcuda judges=itself
#include "by_name.h"

int main() {
  startDriver();
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t granularity = 0;
  EXPECT_OK(cuMemGetAllocationGranularity(&granularity, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT(granularity >= 4096 && (granularity & (granularity - 1)) == 0);

  CUmemGenericAllocationHandle physical = 0, retained = 0;
  EXPECT_OK(cuMemCreate(&physical, granularity, &property, 0));
  EXPECT(cuMemCreate(&retained, granularity + 1, &property, 0) == CUDA_ERROR_INVALID_VALUE);
  CUmemAllocationProp found{};
  EXPECT_OK(cuMemGetAllocationPropertiesFromHandle(&found, physical));
  EXPECT(found.type == property.type && found.location.type == property.location.type && found.location.id == 0);

  CUdeviceptr range = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 2 * granularity, 0, 0, 0));
  EXPECT_OK(cuMemMap(range, granularity, 0, physical, 0));
  EXPECT_OK(cuMemMap(range + granularity, granularity, 0, physical, 0));
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  unsigned long long flags = 77;
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, range));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
  EXPECT_OK(cuMemSetAccess(range, 2 * granularity, &access, 1));
  EXPECT_OK(cuMemGetAccess(&flags, &access.location, range));
  EXPECT(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);

  EXPECT_OK(cuMemsetD32(range, 0xabcd, 16));
  EXPECT(valueAt(range + granularity) == 0xabcd);
  EXPECT_OK(cuMemsetD32(range + granularity, 0x1234, 1));
  EXPECT(valueAt(range) == 0x1234);

  EXPECT_OK(cuMemRetainAllocationHandle(&retained, reinterpret_cast<void*>(range)));
  EXPECT(retained == physical);
  EXPECT_OK(cuMemRelease(retained));
  EXPECT_OK(cuMemUnmap(range, granularity));
  EXPECT(valueAt(range + granularity) == 0x1234);
  EXPECT_OK(cuMemUnmap(range + granularity, granularity));
  EXPECT_OK(cuMemRelease(physical));
  EXPECT_OK(cuMemAddressFree(range, 2 * granularity));
  return verdict();
}
