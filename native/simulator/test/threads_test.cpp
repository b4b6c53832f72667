// Many threads at once, each with streams, events, memory and kernels of its own, while others come
// and go.
#include <atomic>
#include <thread>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "native/simulator/test/kernels.h"

namespace {

constexpr int kThreads = 8;
constexpr int kRounds = 40;

/// One thread's work; returns how many results were wrong.
int work(CUcontext context, CUmodule module, unsigned seed) {
  int wrong = 0;
  const auto must = [&](CUresult result) { wrong += result != CUDA_SUCCESS; };
  must(DRIVER(cuCtxSetCurrent)(context));
  for (unsigned round = 0; round < kRounds; ++round) {
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUfunction store = nullptr;
    CUdeviceptr p = 0, q = 0;
    unsigned value = seed * 1000 + round, seen = 0;
    must(DRIVER(cuModuleGetFunction)(&store, module, "store"));
    must(DRIVER(cuStreamCreate)(&stream,
                                round % 2 == 0 ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT));
    must(DRIVER(cuEventCreate)(&event, CU_EVENT_DEFAULT));
    must(DRIVER(cuMemAlloc_v2)(&p, 4 + seed * 4096));
    must(DRIVER(cuMemAllocAsync)(&q, 64, stream));
    void* parameters[] = {&p, &value};
    must(DRIVER(cuLaunchKernel)(store, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
    must(DRIVER(cuMemcpyDtoDAsync_v2)(q, p, 4, stream));
    must(DRIVER(cuEventRecord)(event, stream));
    must(DRIVER(cuStreamWaitEvent)(CU_STREAM_PER_THREAD, event, 0));
    must(DRIVER(cuMemcpyDtoHAsync_v2)(&seen, q, 4, CU_STREAM_PER_THREAD));
    wrong += seen != value;
    must(DRIVER(cuMemFreeAsync)(q, CU_STREAM_PER_THREAD));
    must(DRIVER(cuStreamDestroy_v2)(stream));
    must(DRIVER(cuEventDestroy_v2)(event));
    must(DRIVER(cuMemFree_v2)(p));
  }
  return wrong;
}

bool isSimulated() {
  char name[64] = {};
  OK(DRIVER(cuDeviceGetName)(name, sizeof name, 0));
  return std::string(name) == "Simulated GPU";
}

TEST_CASE("threads use the driver at the same time") {
  const CUcontext context = usePrimaryContext();
  CUmodule module = nullptr;
  OK(DRIVER(cuModuleLoadData)(&module, kKernels));
  std::size_t before = 0, after = 0, total = 0;
  OK(DRIVER(cuMemGetInfo_v2)(&before, &total));
  std::vector<int> wrong(kThreads, -1);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] { wrong[i] = work(context, module, i); });
  for (auto& thread : threads) thread.join();
  for (const int each : wrong) CHECK(each == 0);
  OK(DRIVER(cuCtxSynchronize)());
  OK(DRIVER(cuMemGetInfo_v2)(&after, &total));
  // A real driver keeps memory for the next allocation.
  CHECK((after == before || !isSimulated()));
  OK(DRIVER(cuDevicePrimaryCtxReset_v2)(0));
}

// A real driver does not check the handle of a stream that has ended.
TEST_CASE("a context ends while threads without one use its stream") {
  usePrimaryContext();
  if (!isSimulated()) return unit::skip("the driver is not the simulated one");
  for (int round = 0; round < kRounds; ++round) {
    CUcontext context = nullptr;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    OK(DRIVER(cuCtxCreate_v2)(&context, 0, 0));
    OK(DRIVER(cuStreamCreate)(&stream, CU_STREAM_DEFAULT));
    OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DEFAULT));
    std::atomic<int> used = 0;
    const auto use = [&] {
      CUresult status = CUDA_SUCCESS;
      while (status == CUDA_SUCCESS) {
        status = DRIVER(cuEventRecord)(event, stream);
        if (status == CUDA_SUCCESS) status = DRIVER(cuStreamSynchronize)(stream);
        ++used;
      }
      CHECK((status == CUDA_ERROR_CONTEXT_IS_DESTROYED || status == CUDA_ERROR_INVALID_HANDLE));
    };
    std::thread one(use), other(use);
    while (used < 4) std::this_thread::yield();
    OK(DRIVER(cuCtxDestroy_v2)(context));
    one.join();
    other.join();
  }
}

}  // namespace
