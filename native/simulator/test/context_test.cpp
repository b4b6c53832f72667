// Calls before cuInit and without a context, primary and own contexts, their stack, limits.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

// The first case of the program: the others initialise the driver.
TEST_CASE("calls before cuInit fail") {
  int count = 0;
  CUcontext context = nullptr;
  EXPECT(CUDA_ERROR_NOT_INITIALIZED, DRIVER(cuDeviceGetCount)(&count));
  EXPECT(CUDA_ERROR_NOT_INITIALIZED, DRIVER(cuCtxGetCurrent)(&context));
  OK(DRIVER(cuDriverGetVersion)(&count));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuInit)(1));
  OK(DRIVER(cuInit)(0));
  OK(DRIVER(cuInit)(0));
}

TEST_CASE("calls that need a context fail without one") {
  OK(DRIVER(cuInit)(0));
  CUdeviceptr p = 0;
  CUdevice device = 5;
  CUcontext context = &*reinterpret_cast<CUcontext>(8);
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuMemAlloc_v2)(&p, 16));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuCtxGetDevice)(&device));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuCtxGetCurrent)(&context));
  CHECK(context == nullptr);
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuCtxPopCurrent_v2)(&context));
  EXPECT(CUDA_ERROR_INVALID_DEVICE, DRIVER(cuDeviceGet)(&device, 99));
  EXPECT(CUDA_ERROR_INVALID_DEVICE, DRIVER(cuDevicePrimaryCtxRetain)(&context, 99));
  EXPECT(CUDA_ERROR_INVALID_DEVICE,
         DRIVER(cuDeviceGetAttribute)(&device, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  EXPECT(CUDA_ERROR_INVALID_VALUE,
         DRIVER(cuDeviceGetAttribute)(&device, static_cast<CUdevice_attribute>(9999), 0));
}

TEST_CASE("the primary context lives while it is retained") {
  OK(DRIVER(cuInit)(0));
  CUcontext first = nullptr, second = nullptr;
  unsigned flags = 9;
  int active = 9;
  OK(DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  CHECK(flags == 0);
  CHECK(active == 0);
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuDevicePrimaryCtxRelease_v2)(0));
  OK(DRIVER(cuDevicePrimaryCtxRetain)(&first, 0));
  OK(DRIVER(cuDevicePrimaryCtxRetain)(&second, 0));
  CHECK(first == second);
  OK(DRIVER(cuCtxSetCurrent)(first));
  OK(DRIVER(cuDevicePrimaryCtxRelease_v2)(0));
  OK(DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuDevicePrimaryCtxRelease_v2)(0));
  EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuDevicePrimaryCtxRetain)(&second, 0));
  CHECK(first == second);
  OK(DRIVER(cuCtxSynchronize)());
  CUdeviceptr p = 0;
  OK(DRIVER(cuMemAlloc_v2)(&p, 16));
  OK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
  OK(DRIVER(cuDevicePrimaryCtxGetState)(0, &flags, &active));
  CHECK(active == 0);
  EXPECT(CUDA_ERROR_CONTEXT_IS_DESTROYED, DRIVER(cuMemFree_v2)(p));
  OK(DRIVER(cuDevicePrimaryCtxRelease_v2)(0));
  OK(DRIVER(cuCtxSetCurrent)(nullptr));
}

TEST_CASE("own contexts form a stack for each thread") {
  OK(DRIVER(cuInit)(0));
  CUcontext a = nullptr, b = nullptr, current = nullptr;
  OK(DRIVER(cuCtxCreate_v2)(&a, 0, 0));
  OK(DRIVER(cuCtxCreate_v2)(&b, CU_CTX_SCHED_BLOCKING_SYNC, 0));
  unsigned flags = 0, version = 0;
  OK(DRIVER(cuCtxGetFlags)(&flags));
  CHECK((flags & CU_CTX_SCHED_MASK) == CU_CTX_SCHED_BLOCKING_SYNC);
  OK(DRIVER(cuCtxGetApiVersion)(b, &version));
  CHECK(version == 3020);
  unsigned long long first = 0, second = 0;
  OK(DRIVER(cuCtxGetId)(a, &first));
  OK(DRIVER(cuCtxGetId)(nullptr, &second));
  CHECK(first != second);
  OK(DRIVER(cuCtxPopCurrent_v2)(&current));
  CHECK(current == b);
  OK(DRIVER(cuCtxGetCurrent)(&current));
  CHECK(current == a);
  OK(DRIVER(cuCtxPushCurrent_v2)(b));
  OK(DRIVER(cuCtxDestroy_v2)(b));
  OK(DRIVER(cuCtxGetCurrent)(&current));
  CHECK(current == a);
  OK(DRIVER(cuCtxSetCurrent)(nullptr));
  OK(DRIVER(cuCtxGetCurrent)(&current));
  CHECK(current == nullptr);
  OK(DRIVER(cuCtxPushCurrent_v2)(a));
  std::thread([&] {
    CUcontext other = a;
    OK(DRIVER(cuCtxGetCurrent)(&other));
    CHECK(other == nullptr);
  }).join();
  OK(DRIVER(cuCtxDestroy_v2)(a));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCtxPushCurrent_v2)(nullptr));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCtxDestroy_v2)(nullptr));
}

/// Calls about a stream and its events, on a thread that may have no context current.
void useStream(CUstream stream, CUfunction store, CUdeviceptr p, CUevent before, CUevent after) {
  unsigned value = 3, seen[4] = {};
  void* parameters[] = {&p, &value};
  float milliseconds = -1;
  OK(DRIVER(cuEventRecord)(before, stream));
  OK(DRIVER(cuMemsetD32Async)(p, 2, 4, stream));
  OK(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
  OK(DRIVER(cuMemcpyDtoHAsync_v2)(seen, p, sizeof seen, stream));
  OK(DRIVER(cuEventRecordWithFlags)(after, stream, 0));
  OK(DRIVER(cuStreamWaitEvent)(stream, after, 0));
  OK(DRIVER(cuStreamSynchronize)(stream));
  OK(DRIVER(cuStreamQuery)(stream));
  OK(DRIVER(cuEventElapsedTime)(&milliseconds, before, after));
  CHECK(milliseconds >= 0);
  CHECK(seen[0] == 3);
  CHECK(seen[3] == 2);
  CUdeviceptr more = 0;
  OK(DRIVER(cuMemAllocAsync)(&more, 64, stream));
  OK(DRIVER(cuMemFreeAsync)(more, stream));
}

/// Without a current context, there are no default streams.
void useDefaultStream(CUstream stream, CUdeviceptr p, CUevent event) {
  CUdeviceptr more = 0;
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuEventRecord)(event, stream));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuStreamWaitEvent)(stream, event, 0));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuStreamQuery)(stream));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuStreamSynchronize)(stream));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuMemsetD32Async)(p, 9, 4, stream));
  EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuMemAllocAsync)(&more, 64, stream));
}

TEST_CASE("a stream or event that is named needs no current context") {
  const CUcontext primary = usePrimaryContext();
  CUcontext created = nullptr, current = nullptr, of = nullptr;
  OK(DRIVER(cuCtxCreate_v2)(&created, 0, 0));
  for (const CUcontext context : {primary, created}) {
    OK(DRIVER(cuCtxSetCurrent)(context));
    const CUfunction store = functionOf(kKernels, "store");
    CUstream stream = nullptr;
    CUevent before = nullptr, after = nullptr;
    CUdeviceptr p = 0;
    OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_DEFAULT));
    OK(DRIVER(cuEventCreate)(&before, CU_EVENT_DEFAULT));
    OK(DRIVER(cuEventCreate)(&after, CU_EVENT_DEFAULT));
    OK(DRIVER(cuMemAlloc_v2)(&p, 64));
    std::thread([&] {
      useStream(stream, store, p, before, after);
      OK(DRIVER(cuStreamGetCtx)(stream, &of));
      CHECK(of == context);
      for (const CUstream other : {CUstream{nullptr}, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD})
        useDefaultStream(other, p, before);
      EXPECT(CUDA_ERROR_INVALID_CONTEXT, DRIVER(cuMemcpyHtoD_v2)(p, &of, sizeof of));
      OK(DRIVER(cuCtxGetCurrent)(&current));
      CHECK(current == nullptr);
    }).join();
    // With another context current, the call is still one of the stream's own.
    OK(DRIVER(cuCtxSetCurrent)(context == primary ? created : primary));
    useStream(stream, store, p, before, after);
    OK(DRIVER(cuCtxSetCurrent)(context));
    OK(DRIVER(cuMemFree_v2)(p));
    OK(DRIVER(cuEventDestroy_v2)(before));
    OK(DRIVER(cuEventDestroy_v2)(after));
    OK(DRIVER(cuStreamDestroy_v2)(stream));
  }
  OK(DRIVER(cuCtxDestroy_v2)(created));
  OK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
  OK(DRIVER(cuCtxSetCurrent)(nullptr));
}

TEST_CASE("a context has limits") {
  OK(DRIVER(cuInit)(0));
  std::size_t value = 0;
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxCreate_v2)(&context, 0, 0));
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 1024);
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
  CHECK(value == 8 << 20);
  OK(DRIVER(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 4096);
  EXPECT(CUDA_ERROR_UNSUPPORTED_LIMIT,
         DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH));
  EXPECT(CUDA_ERROR_UNSUPPORTED_LIMIT, DRIVER(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 4));
  OK(DRIVER(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 1 << 20));
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
  CHECK(value == 599186);
  OK(DRIVER(cuCtxSetLimit)(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 0));
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT));
  CHECK(value == 32);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCtxGetLimit)(&value, static_cast<CUlimit>(99)));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 524288));
  OK(DRIVER(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 1000));
  OK(DRIVER(cuCtxGetLimit)(&value, CU_LIMIT_STACK_SIZE));
  CHECK(value == 1008);
  OK(DRIVER(cuCtxDestroy_v2)(context));
}

TEST_CASE("a forked child of an initialised process cannot use the driver") {
  OK(DRIVER(cuInit)(0));
  const pid_t child = fork();
  if (child == 0) {
    int count = 0;
    const bool dead = DRIVER(cuDeviceGetCount)(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                      DRIVER(cuInit)(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(dead ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

}  // namespace
