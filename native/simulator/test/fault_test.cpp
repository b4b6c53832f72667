// A fault is returned by the next call that waits, and from then on by every call that needs the
// context.
#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

constexpr CUresult kFault = CUDA_ERROR_ILLEGAL_ADDRESS;

TEST_CASE("after a fault, calls that need the context fail and the others answer") {
  const CUcontext context = usePrimaryContext();
  const CUfunction store = functionOf(kKernels, "store");
  CUdeviceptr p = 0, wrong = 0x100;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  OK(DRIVER(cuMemAlloc_v2)(&p, 64));
  OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DEFAULT));
  unsigned value = 1;
  void* parameters[] = {&wrong, &value};
  OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  EXPECT(kFault, DRIVER(cuStreamSynchronize)(stream));

  EXPECT(kFault, DRIVER(cuCtxSynchronize)());
  EXPECT(kFault, DRIVER(cuStreamSynchronize)(nullptr));
  EXPECT(kFault, DRIVER(cuStreamQuery)(stream));
  EXPECT(kFault, DRIVER(cuEventQuery)(event));
  EXPECT(kFault, DRIVER(cuEventRecord)(event, stream));
  EXPECT(kFault, DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  CUdeviceptr q = 0;
  EXPECT(kFault, DRIVER(cuMemAlloc_v2)(&q, 64));
  EXPECT(kFault, DRIVER(cuMemcpyDtoH_v2)(&value, p, 4));
  EXPECT(kFault, DRIVER(cuMemcpyHtoD_v2)(p, &value, 4));
  EXPECT(kFault, DRIVER(cuMemsetD8_v2)(p, 0, 4));
  EXPECT(kFault, DRIVER(cuMemFree_v2)(p));
  std::size_t free = 0, total = 0;
  EXPECT(kFault, DRIVER(cuMemGetInfo_v2)(&free, &total));
  EXPECT(kFault, DRIVER(cuStreamCreate)(&stream, 0));
  EXPECT(kFault, DRIVER(cuEventCreate)(&event, 0));
  CUmodule module = nullptr;
  EXPECT(kFault, DRIVER(cuModuleLoadData)(&module, kKernels));

  int attribute = 0;
  CUcontext current = nullptr;
  CUdevice device = 7;
  OK(DRIVER(cuDeviceGetAttribute)(&attribute, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  CHECK(attribute == 32);
  OK(DRIVER(cuDeviceGetCount)(&attribute));
  OK(DRIVER(cuDeviceTotalMem_v2)(&total, 0));
  OK(DRIVER(cuCtxGetCurrent)(&current));
  CHECK(current == context);
  OK(DRIVER(cuCtxGetDevice)(&device));
  OK(DRIVER(cuCtxSetCurrent)(context));
}

}  // namespace
