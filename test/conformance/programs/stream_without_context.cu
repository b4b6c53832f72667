// A thread without a current context gives work to streams, which have contexts of their own.
// conformance: flags=-lcuda judges=itself
#include <thread>

#include "expect.h"
#include "show_driver.h"

constexpr unsigned kWords = 32, kBytes = kWords * 4;

static const char kText[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry add(.param .u64 words, .param .u32 value)
{
  .reg .u32 %r<5>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [words];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r4, %r3, %r1;
  st.global.u32 [%rd3], %r4;
  ret;
}
)";

struct Objects {
  CUcontext context;
  CUmodule module;
  CUfunction add;
  CUstream stream, other;
  CUevent before, after;
  CUdeviceptr words, copied;
  unsigned* pinned;
};

static void make(Objects& o) {
  EXPECT(cuModuleLoadData(&o.module, kText) == CUDA_SUCCESS);
  EXPECT(cuModuleGetFunction(&o.add, o.module, "add") == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&o.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&o.other, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
  EXPECT(cuEventCreate(&o.before, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  EXPECT(cuEventCreate(&o.after, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&o.words, kBytes) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&o.copied, kBytes) == CUDA_SUCCESS);
  EXPECT(cuMemHostAlloc((void**)&o.pinned, kBytes, 0) == CUDA_SUCCESS);
}

static void destroy(const Objects& o) {
  EXPECT(cuMemFreeHost(o.pinned) == CUDA_SUCCESS);
  EXPECT(cuMemFree(o.words) == CUDA_SUCCESS);
  EXPECT(cuMemFree(o.copied) == CUDA_SUCCESS);
  EXPECT(cuEventDestroy(o.before) == CUDA_SUCCESS);
  EXPECT(cuEventDestroy(o.after) == CUDA_SUCCESS);
  EXPECT(cuStreamDestroy(o.stream) == CUDA_SUCCESS);
  EXPECT(cuStreamDestroy(o.other) == CUDA_SUCCESS);
  EXPECT(cuModuleUnload(o.module) == CUDA_SUCCESS);
}

static CUresult launch(const Objects& o, CUstream stream, unsigned value) {
  CUdeviceptr words = o.words;
  void* parameters[] = {&words, &value};
  return cuLaunchKernel(o.add, 1, 1, 1, kWords, 1, 1, 0, stream, parameters, nullptr);
}

static CUresult launchEx(const Objects& o, CUstream stream, unsigned value) {
  CUdeviceptr words = o.words;
  void* parameters[] = {&words, &value};
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = kWords;
  config.blockDimY = config.blockDimZ = 1;
  config.hStream = stream;
  return cuLaunchKernelEx(&config, o.add, parameters, nullptr);
}

static bool all(const unsigned* words, unsigned value) {
  for (unsigned i = 0; i < kWords; ++i)
    if (words[i] != value) return false;
  return true;
}

static bool noneCurrent() {
  CUcontext current = nullptr;
  return cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == nullptr;
}

static void kernels(const Objects& o) {
  float milliseconds = -1;
  EXPECT(cuEventRecord(o.before, o.stream) == CUDA_SUCCESS);
  EXPECT(cuMemsetD32Async(o.words, 5, kWords, o.stream) == CUDA_SUCCESS);
  for (unsigned i = 0; i < 10; ++i) EXPECT(launch(o, o.stream, 2) == CUDA_SUCCESS);
  EXPECT(launchEx(o, o.stream, 3) == CUDA_SUCCESS);
  EXPECT(cuMemcpyDtoDAsync(o.copied, o.words, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(cuEventRecordWithFlags(o.after, o.stream, 0) == CUDA_SUCCESS);
  EXPECT(cuStreamWaitEvent(o.other, o.after, 0) == CUDA_SUCCESS);
  EXPECT(cuMemcpyDtoHAsync(o.pinned, o.copied, kBytes, o.other) == CUDA_SUCCESS);
  EXPECT(cuStreamSynchronize(o.other) == CUDA_SUCCESS);
  EXPECT(all(o.pinned, 28));
  EXPECT(cuEventQuery(o.after) == CUDA_SUCCESS);
  EXPECT(cuEventSynchronize(o.after) == CUDA_SUCCESS);
  EXPECT(cuEventElapsedTime(&milliseconds, o.before, o.after) == CUDA_SUCCESS);
  EXPECT(milliseconds >= 0);
  EXPECT(cuStreamQuery(o.other) == CUDA_SUCCESS);
}

static void copies(const Objects& o) {
  unsigned host[kWords], back[kWords] = {};
  for (unsigned& word : host) word = 40;
  EXPECT(cuMemcpyHtoDAsync(o.words, host, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(launch(o, o.stream, 1) == CUDA_SUCCESS);
  EXPECT(cuMemcpyAsync(o.copied, o.words, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(cuMemcpyDtoHAsync(back, o.copied, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(cuStreamSynchronize(o.stream) == CUDA_SUCCESS);
  EXPECT(all(back, 41));
  for (unsigned i = 0; i < kWords; ++i) o.pinned[i] = 50;
  EXPECT(cuMemcpyHtoDAsync(o.words, o.pinned, kBytes, o.stream) == CUDA_SUCCESS);
  CUDA_MEMCPY2D rows{};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = o.words;
  rows.dstDevice = o.copied;
  rows.srcPitch = rows.dstPitch = rows.WidthInBytes = kBytes / 2;
  rows.Height = 2;
  EXPECT(cuMemcpy2DAsync(&rows, o.stream) == CUDA_SUCCESS);
  EXPECT(cuMemcpyDtoHAsync(back, o.copied, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(cuStreamSynchronize(o.stream) == CUDA_SUCCESS);
  EXPECT(all(back, 50));
}

static void allocations(const Objects& o, CUmemoryPool pool) {
  for (const bool ofPool : {false, true}) {
    CUdeviceptr more = 0;
    const CUresult made = ofPool ? cuMemAllocFromPoolAsync(&more, kBytes, pool, o.stream)
                                 : cuMemAllocAsync(&more, kBytes, o.stream);
    EXPECT(made == CUDA_SUCCESS);
    EXPECT(cuMemsetD32Async(more, 60 + ofPool, kWords, o.stream) == CUDA_SUCCESS);
    EXPECT(cuMemcpyDtoHAsync(o.pinned, more, kBytes, o.stream) == CUDA_SUCCESS);
    EXPECT(cuMemFreeAsync(more, o.stream) == CUDA_SUCCESS);
    EXPECT(cuStreamSynchronize(o.stream) == CUDA_SUCCESS);
    EXPECT(all(o.pinned, 60 + ofPool));
  }
}

static void add(unsigned* sum, unsigned value) { *sum += value; }

static void hostFunctions(const Objects& o) {
  unsigned sum = 0;
  const auto function = [](void* at) { add((unsigned*)at, 1); };
  const auto callback = [](CUstream, CUresult status, void* at) {
    if (status == CUDA_SUCCESS) add((unsigned*)at, 2);
  };
  EXPECT(cuLaunchHostFunc(o.stream, function, &sum) == CUDA_SUCCESS);
  EXPECT(cuStreamAddCallback(o.stream, callback, &sum, 0) == CUDA_SUCCESS);
  EXPECT(cuStreamSynchronize(o.stream) == CUDA_SUCCESS);
  EXPECT(sum == 3);
}

static void questions(const Objects& o) {
  CUcontext context = nullptr;
  CUdevice device = -1;
  unsigned flags = 7;
  int priority = 7;
  unsigned long long first = 0, second = 0;
  EXPECT(cuStreamGetCtx(o.stream, &context) == CUDA_SUCCESS && context == o.context);
  EXPECT(cuStreamGetDevice(o.stream, &device) == CUDA_SUCCESS && device == 0);
  EXPECT(cuStreamGetFlags(o.stream, &flags) == CUDA_SUCCESS && flags == CU_STREAM_NON_BLOCKING);
  EXPECT(cuStreamGetPriority(o.stream, &priority) == CUDA_SUCCESS && priority == 0);
  EXPECT(cuStreamGetId(o.stream, &first) == CUDA_SUCCESS);
  EXPECT(cuStreamGetId(o.other, &second) == CUDA_SUCCESS && second != first);
}

static void defaultStreams(const Objects& o) {
  CUdeviceptr more = 0;
  unsigned long long id = 0;
  unsigned words[kWords] = {};
  for (const CUstream stream : {CUstream(nullptr), CU_STREAM_LEGACY, CU_STREAM_PER_THREAD})
    EXPECT(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuStreamQuery(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuStreamGetId(nullptr, &id) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuStreamWaitEvent(nullptr, o.after, 0) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuEventRecord(o.after, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(launch(o, nullptr, 100) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpyAsync(o.words, o.copied, kBytes, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpyHtoD(o.words, words, kBytes) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpyDtoH(words, o.words, kBytes) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpy(o.words, o.copied, kBytes) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemsetD8Async(o.words, 1, kBytes, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemsetD32(o.words, 1, kWords) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemAllocAsync(&more, kBytes, nullptr) == CUDA_ERROR_INVALID_CONTEXT);
  EXPECT(cuMemcpyDtoHAsync(words, o.words, kBytes, o.stream) == CUDA_SUCCESS);
  EXPECT(cuStreamSynchronize(o.stream) == CUDA_SUCCESS);
  EXPECT(all(words, 50));
}

int main() {
  CUcontext primary = nullptr, created = nullptr;
  CUmemoryPool pool = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxCreate(&created, nullptr, 0, 0) == CUDA_SUCCESS);
  for (const CUcontext context : {primary, created}) {
    EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
    Objects objects{context};
    make(objects);
    std::thread([&] {
      EXPECT(noneCurrent());
      kernels(objects);
      copies(objects);
      allocations(objects, pool);
      hostFunctions(objects);
      questions(objects);
      defaultStreams(objects);
      EXPECT(noneCurrent());
    }).join();
    destroy(objects);
  }
  EXPECT(cuCtxDestroy(created) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  return verdict();
}
