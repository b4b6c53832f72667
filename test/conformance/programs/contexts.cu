// The primary context, own contexts, their stack and the current context of a thread, through the driver API.
// conformance: flags=-lcuda
#include <thread>

#include "show_driver.h"

static CUcontext primary, own;

static const char* nameOf(CUcontext context) {
  return context == nullptr ? "none" : context == primary ? "primary" : context == own ? "own" : "another";
}

static void current(const char* when) {
  CUcontext context = nullptr;
  CUdevice device = -1;
  const CUresult result = cuCtxGetCurrent(&context), deviceResult = cuCtxGetDevice(&device);
  std::printf("%s: %s, %s; device %s %d\n", when, resultName(result), nameOf(context), resultName(deviceResult), device);
}

static void state(CUdevice device) {
  unsigned flags = 99;
  int active = -1;
  const CUresult result = cuDevicePrimaryCtxGetState(device, &flags, &active);
  std::printf("primary context: %s, flags %u, active %d\n", resultName(result), flags, active);
}

int main() {
  CUdevice device = -1;
  CUcontext popped = nullptr, again = nullptr;
  CUdeviceptr d = 0;
  int count = 0;
  unsigned version = 0;
  SHOW(cuDeviceGetCount(&count));
  SHOW(cuCtxGetCurrent(&popped));
  SHOW(cuInit(1));
  SHOW(cuInit(0));
  SHOW(cuInit(0));
  SHOW(cuDeviceGet(&device, 4096));
  SHOW(cuDeviceGet(&device, 0));
  current("at first");
  SHOW(cuMemAlloc(&d, 16));
  state(device);
  SHOW(cuDevicePrimaryCtxRetain(&primary, device));
  SHOW(cuDevicePrimaryCtxRetain(&again, device));
  std::printf("the same: %s\n", yesNo(primary == again));
  state(device);
  current("after retain");
  SHOW(cuCtxSetCurrent(primary));
  current("after set");
  SHOW(cuMemAlloc(&d, 16));
  SHOW(cuCtxCreate(&own, nullptr, CU_CTX_SCHED_SPIN, device));
  current("after create");
  SHOW(cuMemFree(d));
  SHOW(cuCtxPushCurrent(primary));
  current("after push");
  SHOW(cuCtxPopCurrent(&popped));
  std::printf("popped %s\n", nameOf(popped));
  SHOW(cuCtxPopCurrent(&popped));
  std::printf("popped %s\n", nameOf(popped));
  current("after two pops");
  SHOW(cuCtxGetApiVersion(own, &version));
  SHOW(cuCtxSetCurrent(own));
  unsigned flags = 99;
  SHOW(cuCtxGetFlags(&flags));
  std::printf("flags %u\n", flags & CU_CTX_SCHED_MASK);
  std::thread([] {
    current("another thread");
    SHOW(cuCtxSetCurrent(own));
    current("another thread after set");
    SHOW(cuCtxSynchronize());
  }).join();
  SHOW(cuCtxDestroy(own));
  current("after destroy");
  SHOW(cuCtxSetCurrent(nullptr));
  current("after set to null");
  SHOW(cuCtxPopCurrent(&popped));
  SHOW(cuCtxSynchronize());
  SHOW(cuCtxDestroy(nullptr));
  SHOW(cuDevicePrimaryCtxRelease(device));
  state(device);
  SHOW(cuDevicePrimaryCtxRelease(device));
  state(device);
  SHOW(cuDevicePrimaryCtxRelease(device));
}
