// Virtual memory: copies and memsets of a range in two mappings, side by side, of two physical allocations.
// conformance: flags=-lcuda judges=itself
#include <vector>

#include "by_name.h"

int main() {
  startDriver();
  CUmemAllocationProp property{};
  property.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  property.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::size_t size = 0;
  EXPECT_OK(cuMemGetAllocationGranularity(&size, &property, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CUdeviceptr range = 0, other = 0;
  EXPECT_OK(cuMemAddressReserve(&range, 3 * size, 0, 0, 0));
  for (int i = 0; i < 2; ++i) {
    CUmemGenericAllocationHandle physical = 0;
    EXPECT_OK(cuMemCreate(&physical, size, &property, 0));
    EXPECT_OK(cuMemMap(range + i * size, size, 0, physical, 0));
    EXPECT_OK(cuMemRelease(physical));
  }
  CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  EXPECT_OK(cuMemSetAccess(range, 2 * size, &access, 1));
  EXPECT_OK(cuMemAlloc(&other, size));

  std::vector<unsigned> written(size / 4), seen(size / 4);
  for (std::size_t i = 0; i < written.size(); ++i) written[i] = static_cast<unsigned>(i * 2654435761u);
  const CUdeviceptr middle = range + size / 2;
  EXPECT_OK(cuMemcpyHtoD(middle, written.data(), size));
  EXPECT_OK(cuMemcpyDtoDAsync(other, middle, size, nullptr));
  EXPECT_OK(cuMemcpyDtoH(seen.data(), other, size));
  EXPECT(seen == written);
  EXPECT_OK(cuMemcpyDtoH(seen.data(), middle, size));
  EXPECT(seen == written);

  EXPECT_OK(cuMemsetD32(range + size - 64, 0xabcd, 32));
  EXPECT_OK(cuMemcpyDtoH(seen.data(), range + size - 128, 256));
  EXPECT(seen[15] != 0xabcd && seen[16] == 0xabcd && seen[47] == 0xabcd && seen[48] != 0xabcd);

  EXPECT_OK(cuMemUnmap(range, 2 * size));
  EXPECT_OK(cuMemAddressFree(range, 3 * size));
  EXPECT_OK(cuMemFree(other));
  return verdict();
}
