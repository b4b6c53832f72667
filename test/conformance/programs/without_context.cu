// A thread without a current context: calls that need one fail, whatever contexts there are besides.
// conformance: flags=-lcuda judges=itself
#include "expect.h"
#include "show_driver.h"

static void fails(CUdeviceptr memory) {
  CUcontext current = nullptr;
  EXPECT(cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr);
  CUstream stream = nullptr;
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_ERROR_INVALID_CONTEXT);
  CUevent event = nullptr;
  EXPECT(cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_ERROR_INVALID_CONTEXT);
  CUdeviceptr more = 0;
  EXPECT(cuMemAlloc(&more, 4096) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemsetD32(memory, 1, 1) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
}

int main() {
  CUcontext primary = nullptr, created = nullptr;
  CUdeviceptr memory = 0;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&memory, 4096) == CUDA_SUCCESS);
  EXPECT(cuCtxCreate(&created, nullptr, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32(memory, 1, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxPopCurrent(&created) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32(memory, 1, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxPopCurrent(&primary) == CUDA_SUCCESS);
  fails(memory);
  EXPECT(cuCtxPushCurrent(created) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32(memory, 1, 1) == CUDA_SUCCESS);
  EXPECT(cuCtxDestroy(created) == CUDA_SUCCESS);
  fails(memory);
  EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  EXPECT(cuMemFree(memory) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  return verdict();
}
