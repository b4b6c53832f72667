// The pool of a place: the default one, and one of the program's own in its stead.
// conformance: flags=-lcuda
#include "show_driver.h"

int main() {
  CUcontext context = nullptr;
  CUmemoryPool byDevice = nullptr, byPlace = nullptr, own = nullptr, current = nullptr;
  CUmemLocation place{};
  place.type = CU_MEM_LOCATION_TYPE_DEVICE;
  SHOW(cuInit(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuDeviceGetDefaultMemPool(&byDevice, 0));
  SHOW(cuMemGetDefaultMemPool(&byPlace, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  std::printf("the same pool: %s\n", yesNo(byDevice == byPlace));
  SHOW(cuMemGetMemPool(&current, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  std::printf("it is in use: %s\n", yesNo(current == byPlace));

  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = place;
  SHOW(cuMemPoolCreate(&own, &properties));
  SHOW(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, own));
  SHOW(cuMemGetMemPool(&current, &place, CU_MEM_ALLOCATION_TYPE_PINNED));
  std::printf("now the own one is: %s\n", yesNo(current == own));
  SHOW(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_PINNED, byDevice));
  SHOW(cuMemPoolDestroy(own));
}
