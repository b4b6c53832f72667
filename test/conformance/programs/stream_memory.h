// What programs about memory operations of streams share: words of pinned and of device memory, and driver calls that must succeed.
#pragma once

#include <cuda.h>

#include "expect.h"

inline void expectDriver(CUresult result, CUresult wanted, const char* call, int line) {
  const char* name = nullptr;
  if (result == wanted || ++wrongExpectations > 20) return;
  cuGetErrorName(result, &name);
  std::printf("line %d: %s: %s\n", line, call, name ? name : "unknown");
}
#define OK(...) expectDriver(__VA_ARGS__, CUDA_SUCCESS, #__VA_ARGS__, __LINE__)
#define FAILS(wanted, ...) expectDriver(__VA_ARGS__, wanted, #__VA_ARGS__, __LINE__)

/// Some words of pinned memory, and the same number of device memory.
struct Words {
  volatile unsigned* host = nullptr;
  CUdeviceptr pinned = 0, device = 0;
  Words() {
    void* memory = nullptr;
    OK(cuMemHostAlloc(&memory, 256, CU_MEMHOSTALLOC_DEVICEMAP));
    OK(cuMemHostGetDevicePointer(&pinned, memory, 0));
    OK(cuMemAlloc(&device, 256));
    OK(cuMemsetD8(device, 0, 256));
    host = static_cast<unsigned*>(memory);
    for (int i = 0; i < 64; ++i) host[i] = 0;
    OK(cuCtxSynchronize());
  }
  ~Words() {
    OK(cuMemFree(device));
    OK(cuMemFreeHost(const_cast<unsigned*>(host)));
  }
  unsigned at(int index) const {
    unsigned value = 0;
    OK(cuMemcpyDtoH(&value, device + 4 * index, 4));
    return value;
  }
};

inline CUstream makeStream() {
  CUstream stream = nullptr;
  OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

/// Makes a primary context current.
inline CUcontext useContext() {
  CUdevice device = 0;
  CUcontext context = nullptr;
  OK(cuInit(0));
  OK(cuDeviceGet(&device, 0));
  OK(cuDevicePrimaryCtxRetain(&context, device));
  OK(cuCtxSetCurrent(context));
  return context;
}
