// What a capture forbids, and how it ends then.
#include <cstdint>
#include <thread>

#include "native/simulator/test/graph_test.h"

namespace {

constexpr CUstreamCaptureMode kGlobal = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr CUstreamCaptureMode kThreadLocal = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr CUstreamCaptureMode kRelaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

/// Two streams and an event that end with the test case.
struct Objects {
  explicit Objects(unsigned flags = CU_STREAM_NON_BLOCKING) {
    OK(DRIVER(cuStreamCreate)(&stream, flags));
    OK(DRIVER(cuStreamCreate)(&other, flags));
    OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
    p = allocate();
  }
  ~Objects() {
    OK(DRIVER(cuStreamDestroy_v2)(stream));
    OK(DRIVER(cuStreamDestroy_v2)(other));
    OK(DRIVER(cuEventDestroy_v2)(event));
    OK(DRIVER(cuMemFree_v2)(p));
  }
  Objects(const Objects&) = delete;
  Objects& operator=(const Objects&) = delete;

  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  CUdeviceptr p = 0;
};

void begin(CUstream stream, CUstreamCaptureMode mode = kRelaxed) {
  OK(DRIVER(cuStreamBeginCapture_v2)(stream, mode));
}

void store(CUstream stream, CUdeviceptr at) {
  Store kernel{storeKernel(), at, 1};
  OK(DRIVER(cuLaunchKernel)(storeKernel(), 1, 1, 1, 1, 1, 1, 0, stream, kernel.arguments, nullptr));
}

/// Ends a capture that fails.
void endsWith(CUresult expected, CUstream stream) {
  CUgraph graph = nullptr;
  EXPECT(expected, DRIVER(cuStreamEndCapture)(stream, &graph));
  CHECK(graph == nullptr);
}

void endsWell(CUstream stream) {
  CUgraph graph = nullptr;
  OK(DRIVER(cuStreamEndCapture)(stream, &graph));
  OK(DRIVER(cuGraphDestroy)(graph));
}

/// Ends a capture of which it is not known whether an error has invalidated it.
void ends(CUstream stream) {
  CUgraph graph = nullptr;
  DRIVER(cuStreamEndCapture)(stream, &graph);
  if (graph != nullptr) OK(DRIVER(cuGraphDestroy)(graph));
}

void isInvalidated(CUstream stream) {
  CUstreamCaptureStatus status{};
  OK(DRIVER(cuStreamIsCapturing)(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  endsWith(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, stream);
  OK(DRIVER(cuStreamIsCapturing)(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("a capture begins once, and not in the legacy stream") {
  usePrimaryContext();
  Objects mine;
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         DRIVER(cuStreamBeginCapture_v2)(CU_STREAM_LEGACY, kRelaxed));
  begin(mine.stream);
  EXPECT(CUDA_ERROR_ILLEGAL_STATE, DRIVER(cuStreamBeginCapture_v2)(mine.stream, kRelaxed));
  endsWell(mine.stream);
  CUgraph graph = nullptr;
  EXPECT(CUDA_ERROR_ILLEGAL_STATE, DRIVER(cuStreamEndCapture)(mine.stream, &graph));
}

TEST_CASE("waiting for a capturing stream invalidates its capture") {
  usePrimaryContext();
  Objects mine;
  begin(mine.stream);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, DRIVER(cuStreamSynchronize)(mine.stream));
  Store kernel{storeKernel(), mine.p, 1};
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
         DRIVER(cuLaunchKernel)(storeKernel(), 1, 1, 1, 1, 1, 1, 0, mine.stream, kernel.arguments,
                                nullptr));
  isInvalidated(mine.stream);
  store(mine.stream, mine.p);
  OK(DRIVER(cuStreamSynchronize)(mine.stream));
}

TEST_CASE("asking about a captured event invalidates the capture") {
  usePrimaryContext();
  Objects mine;
  begin(mine.stream);
  store(mine.stream, mine.p);
  OK(DRIVER(cuEventRecord)(mine.event, mine.stream));
  EXPECT(CUDA_ERROR_CAPTURED_EVENT, DRIVER(cuEventQuery)(mine.event));
  isInvalidated(mine.stream);
}

TEST_CASE("the mode of a capture says which threads may allocate memory") {
  const CUcontext context = usePrimaryContext();
  Objects mine;
  CUdeviceptr q = 0;
  begin(mine.stream, kRelaxed);
  OK(DRIVER(cuMemAlloc_v2)(&q, 16));
  endsWell(mine.stream);

  begin(mine.stream, kGlobal);
  CUdeviceptr unused = 0;
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, DRIVER(cuMemAlloc_v2)(&unused, 16));
  isInvalidated(mine.stream);

  const auto allocateElsewhere = [&](CUresult expected) {
    std::thread([&] {
      OK(DRIVER(cuCtxSetCurrent)(context));
      CUdeviceptr theirs = 0;
      EXPECT(expected, DRIVER(cuMemAlloc_v2)(&theirs, 16));
      if (expected == CUDA_SUCCESS) OK(DRIVER(cuMemFree_v2)(theirs));
    }).join();
  };
  begin(mine.stream, kThreadLocal);
  allocateElsewhere(CUDA_SUCCESS);
  endsWell(mine.stream);
  begin(mine.stream, kGlobal);
  allocateElsewhere(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  isInvalidated(mine.stream);

  begin(mine.stream, kGlobal);
  CUstreamCaptureMode mode = kRelaxed;
  OK(DRIVER(cuThreadExchangeStreamCaptureMode)(&mode));
  CHECK(mode == kGlobal);
  OK(DRIVER(cuMemFree_v2)(q));
  OK(DRIVER(cuThreadExchangeStreamCaptureMode)(&mode));
  CHECK(mode == kRelaxed);
  endsWell(mine.stream);
}

TEST_CASE("a capture forbids instantiation and limits, but not copies in the legacy stream") {
  usePrimaryContext();
  Objects mine;
  std::uint32_t word = 1;
  begin(mine.stream, kGlobal);
  OK(DRIVER(cuMemcpyHtoD_v2)(mine.p, &word, sizeof word));
  OK(DRIVER(cuMemcpyDtoH_v2)(&word, mine.p, sizeof word));
  OK(DRIVER(cuMemsetD8_v2)(mine.p, 0, 4));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemFreeAsync)(mine.p, mine.stream));
  endsWell(mine.stream);
  const CUgraph graph = create();
  CUgraphExec exec = nullptr;
  begin(mine.stream, kThreadLocal);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         DRIVER(cuGraphInstantiateWithFlags)(&exec, graph, 0));
  isInvalidated(mine.stream);
  begin(mine.stream, kGlobal);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, DRIVER(cuCtxSetLimit)(CU_LIMIT_STACK_SIZE, 4096));
  isInvalidated(mine.stream);
  begin(mine.stream);
  exec = instantiate(graph);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, DRIVER(cuGraphLaunch)(exec, mine.stream));
  isInvalidated(mine.stream);
  destroy(graph, exec);
}

TEST_CASE("the legacy stream does not join a capture") {
  usePrimaryContext();
  Objects mine;
  begin(mine.stream);
  OK(DRIVER(cuEventRecord)(mine.event, mine.stream));
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, DRIVER(cuStreamWaitEvent)(nullptr, mine.event, 0));
  isInvalidated(mine.stream);
}

TEST_CASE("the legacy stream cannot be used while a blocking stream captures") {
  usePrimaryContext();
  Objects blocking(CU_STREAM_DEFAULT);
  begin(blocking.stream);
  CUstreamCaptureStatus status{};
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, DRIVER(cuStreamIsCapturing)(nullptr, &status));
  store(blocking.stream, blocking.p);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, DRIVER(cuMemsetD8Async)(blocking.p, 0, 1, nullptr));
  isInvalidated(blocking.stream);
  OK(DRIVER(cuMemsetD8Async)(blocking.p, 0, 1, nullptr));
}

TEST_CASE("work that was not joined ends a capture") {
  usePrimaryContext();
  Objects mine;
  begin(mine.stream);
  store(mine.stream, mine.p);
  OK(DRIVER(cuEventRecord)(mine.event, mine.stream));
  OK(DRIVER(cuStreamWaitEvent)(mine.other, mine.event, 0));
  store(mine.other, mine.p);
  endsWith(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, mine.stream);
  store(mine.other, mine.p);
  OK(DRIVER(cuStreamSynchronize)(mine.other));
}

TEST_CASE("a capture depends on nothing outside, and on no other capture") {
  usePrimaryContext();
  Objects mine;
  store(mine.other, mine.p);
  OK(DRIVER(cuEventRecord)(mine.event, mine.other));
  begin(mine.stream);
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
         DRIVER(cuStreamWaitEvent)(mine.stream, mine.event, 0));
  isInvalidated(mine.stream);
  begin(mine.stream);
  begin(mine.other);
  store(mine.other, mine.p);
  OK(DRIVER(cuEventRecord)(mine.event, mine.other));
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_MERGE, DRIVER(cuStreamWaitEvent)(mine.stream, mine.event, 0));
  isInvalidated(mine.stream);
  isInvalidated(mine.other);
}

TEST_CASE("a capture ends where it began, and in the thread in which it began") {
  const CUcontext context = usePrimaryContext();
  Objects mine;
  begin(mine.stream, kThreadLocal);
  store(mine.stream, mine.p);
  std::thread([&] {
    OK(DRIVER(cuCtxSetCurrent)(context));
    CUgraph graph = nullptr;
    EXPECT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, DRIVER(cuStreamEndCapture)(mine.stream, &graph));
  }).join();
  ends(mine.stream);
  begin(mine.stream);
  store(mine.stream, mine.p);
  OK(DRIVER(cuEventRecord)(mine.event, mine.stream));
  OK(DRIVER(cuStreamWaitEvent)(mine.other, mine.event, 0));
  CUgraph graph = nullptr;
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, DRIVER(cuStreamEndCapture)(mine.other, &graph));
  ends(mine.stream);
}

TEST_CASE("a callback cannot be captured") {
  usePrimaryContext();
  Objects mine;
  begin(mine.stream);
  const CUstreamCallback callback = [](CUstream, CUresult, void*) {};
  EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         DRIVER(cuStreamAddCallback)(mine.stream, callback, nullptr, 0));
  isInvalidated(mine.stream);
}

}  // namespace
