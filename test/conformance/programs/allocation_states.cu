// Allocating and freeing in each state of a thread: without a context, during captures of each mode, behind a broken context;
// who waits for work that uses freed memory; and the attribute that makes copies of memory synchronous.
// conformance: flags=-lcuda
#include "show_driver.h"

__global__ void breakContext() { *reinterpret_cast<volatile int*>(0x10) = 1; }

static void captured(CUstream stream, const char* what, CUresult status) {
  CUgraph graph = nullptr;
  const CUresult ended = cuStreamEndCapture(stream, &graph);
  std::printf("  %s: %s, the capture: %s\n", what, resultName(status), resultName(ended));
  if (graph != nullptr) cuGraphDestroy(graph);
}

static void duringCapture(CUstream stream, CUstreamCaptureMode mode) {
  CUdeviceptr small = 0, large = 0, made = 0;
  std::printf("capture of mode %d\n", mode);
  SHOW(cuMemAlloc(&small, 512));
  SHOW(cuMemAlloc(&large, 4 << 20));
  const auto begin = [&] { SHOW(cuStreamBeginCapture(stream, mode)); };
  begin(), captured(stream, "nothing", cuMemAlloc(&made, 0));
  begin(), captured(stream, "512 bytes", cuMemAlloc(&made, 512));
  begin(), captured(stream, "8 MiB", cuMemAlloc(&made, 8 << 20));
  begin(), captured(stream, "free of nothing", cuMemFree(0));
  begin(), captured(stream, "free of an address of nothing", cuMemFree(1));
  begin(), captured(stream, "free of 512 bytes", cuMemFree(small));
  begin(), captured(stream, "free of 4 MiB", cuMemFree(large));
}

static void synchronousCopies(CUdeviceptr memory) {
  const unsigned off = 0, on = 1;
  int value = 7;
  for (const unsigned* each : {&off, &on}) {
    SHOW(cuPointerSetAttribute(each, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
    SHOW(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
    std::printf("synchronous copies: %d\n", value);
  }
  SHOW(cuPointerSetAttribute(&off, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 1));
}

int main() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr small = 0, large = 0, other = 0;
  size_t pitch = 0;
  SHOW(cuInit(0));
  SHOW(cuMemAlloc(&small, 512));
  SHOW(cuMemAlloc(&small, 0));
  SHOW(cuMemFree(0));
  SHOW(cuDevicePrimaryCtxRetain(&context, 0));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuMemAlloc(&small, 512));
  SHOW(cuMemAllocPitch(&large, &pitch, 1000, 5000, 4));
  std::printf("pitch %zu\n", pitch);
  SHOW(cuMemAllocPitch(&other, &pitch, 1000, 10, 3));
  SHOW(cuMemAllocPitch(&other, &pitch, 0, 10, 4));
  SHOW(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  synchronousCopies(small);
  synchronousCopies(large);
  for (const auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED})
    duringCapture(stream, mode);
  SHOW(cuMemFreeAsync(small, stream));
  SHOW(cuStreamSynchronize(stream));
  SHOW(cuMemFree(small));
  SHOW(cuCtxSetCurrent(nullptr));
  SHOW(cuMemFree(large));
  SHOW(cuMemFree(large));
  SHOW(cuCtxSetCurrent(context));
  SHOW(cuMemAlloc(&small, 512));
  SHOW(cuMemAlloc(&large, 4 << 20));
  breakContext<<<1, 1>>>();
  SHOW(cuCtxSynchronize());
  SHOW(cuMemAlloc(&other, 0));
  SHOW(cuMemAlloc(&other, 512));
  SHOW(cuMemAlloc(&other, 8 << 20));
  SHOW(cuMemFree(0));
  SHOW(cuMemFree(small));
  SHOW(cuMemFree(large));
  SHOW(cuMemcpyDtoH(&context, small, 513));
}
