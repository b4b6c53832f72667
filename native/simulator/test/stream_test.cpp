// Streams, events, host functions and default streams: what comes after what. Host functions that
// wait make the order, never time.
#include <atomic>
#include <thread>
#include <vector>

#include "native/simulator/test/driver_test.h"
#include "test/unit/waiting.h"

namespace {

/// A host function that holds its stream until it is let go.
class Gate {
 public:
  void close(CUstream stream) { OK(DRIVER(cuLaunchHostFunc)(stream, wait, this)); }
  void open() {
    open_ = true;
    open_.notify_all();
  }

 private:
  static void wait(void* gate) { static_cast<Gate*>(gate)->open_.wait(false); }
  std::atomic<bool> open_{false};
};

void setTrue(void* flag) { *static_cast<std::atomic<bool>*>(flag) = true; }

CUstream create(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  OK(DRIVER(cuStreamCreate)(&stream, flags));
  return stream;
}

TEST_CASE("a stream has a priority, flags, an id and a context") {
  usePrimaryContext();
  CUstream stream = nullptr;
  int least = 7, greatest = 7, priority = 7;
  unsigned flags = 7;
  unsigned long long first = 0, second = 0;
  OK(DRIVER(cuCtxGetStreamPriorityRange)(&least, &greatest));
  CHECK(least == 0);
  CHECK(greatest == -5);
  OK(DRIVER(cuStreamCreateWithPriority)(&stream, CU_STREAM_NON_BLOCKING, -100));
  OK(DRIVER(cuStreamGetPriority)(stream, &priority));
  CHECK(priority == -5);
  OK(DRIVER(cuStreamGetFlags)(stream, &flags));
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  OK(DRIVER(cuStreamGetId)(stream, &first));
  OK(DRIVER(cuStreamGetId)(nullptr, &second));
  CHECK(first != second);
  CUcontext context = nullptr, current = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&current));
  OK(DRIVER(cuStreamGetCtx)(stream, &context));
  CHECK(context == current);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  OK(DRIVER(cuStreamIsCapturing)(stream, &status));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamCreate)(&stream, 2));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamCreate)(nullptr, 0));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuStreamDestroy_v2)(nullptr));
}

TEST_CASE("streams are independent") {
  usePrimaryContext();
  const CUstream a = create(), b = create();
  Gate gate;
  std::atomic<bool> ran = false;
  gate.close(a);
  OK(DRIVER(cuLaunchHostFunc)(b, setTrue, &ran));
  OK(DRIVER(cuStreamSynchronize)(b));
  CHECK(ran);
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(a));
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(a));
  OK(DRIVER(cuStreamQuery)(a));
  OK(DRIVER(cuStreamDestroy_v2)(a));
  OK(DRIVER(cuStreamDestroy_v2)(b));
}

TEST_CASE("events order streams") {
  usePrimaryContext();
  const CUstream a = create(), b = create();
  CUevent event = nullptr;
  OK(DRIVER(cuEventCreate)(&event, CU_EVENT_DEFAULT));
  OK(DRIVER(cuEventQuery)(event));
  OK(DRIVER(cuEventSynchronize)(event));
  OK(DRIVER(cuStreamWaitEvent)(b, event, 0));
  OK(DRIVER(cuStreamSynchronize)(b));
  Gate gate;
  std::atomic<bool> ran = false;
  gate.close(a);
  OK(DRIVER(cuEventRecord)(event, a));
  OK(DRIVER(cuStreamWaitEvent)(b, event, 0));
  OK(DRIVER(cuLaunchHostFunc)(b, setTrue, &ran));
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuEventQuery)(event));
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(b));
  CHECK(!ran);
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(b));
  CHECK(ran);
  OK(DRIVER(cuEventQuery)(event));
  OK(DRIVER(cuEventDestroy_v2)(event));
  OK(DRIVER(cuStreamDestroy_v2)(a));
  OK(DRIVER(cuStreamDestroy_v2)(b));
}

TEST_CASE("two events tell the time between them") {
  usePrimaryContext();
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  float milliseconds = -1;
  OK(DRIVER(cuEventCreate)(&start, CU_EVENT_DEFAULT));
  OK(DRIVER(cuEventCreate)(&end, CU_EVENT_BLOCKING_SYNC));
  OK(DRIVER(cuEventCreate)(&untimed, CU_EVENT_DISABLE_TIMING));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuEventElapsedTime)(&milliseconds, start, end));
  OK(DRIVER(cuEventRecord)(start, nullptr));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuEventElapsedTime)(&milliseconds, start, end));
  const CUstream stream = create();
  Gate gate;
  gate.close(stream);
  OK(DRIVER(cuEventRecord)(end, stream));
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuEventElapsedTime)(&milliseconds, start, end));
  OK(DRIVER(cuEventSynchronize)(start));
  gate.open();
  OK(DRIVER(cuEventSynchronize)(end));
  OK(DRIVER(cuEventElapsedTime)(&milliseconds, start, end));
  CHECK(milliseconds >= 0);
  OK(DRIVER(cuEventRecord)(untimed, nullptr));
  OK(DRIVER(cuCtxSynchronize)());
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuEventElapsedTime)(&milliseconds, start, untimed));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuEventElapsedTime)(nullptr, start, end));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuEventCreate)(&end, 64));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuEventRecord)(nullptr, nullptr));
  EXPECT(CUDA_ERROR_INVALID_HANDLE, DRIVER(cuEventDestroy_v2)(nullptr));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

TEST_CASE("the legacy stream waits for blocking streams") {
  usePrimaryContext();
  const CUstream blocking = create(CU_STREAM_DEFAULT), free = create();
  Gate gate;
  std::atomic<bool> legacy = false, after = false, independent = false;
  gate.close(blocking);
  OK(DRIVER(cuLaunchHostFunc)(nullptr, setTrue, &legacy));
  OK(DRIVER(cuLaunchHostFunc)(blocking, setTrue, &after));
  OK(DRIVER(cuLaunchHostFunc)(free, setTrue, &independent));
  OK(DRIVER(cuStreamSynchronize)(free));
  CHECK(independent);
  CHECK(!legacy);
  CHECK(!after);
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(nullptr));
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(nullptr));
  CHECK(legacy);
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(after);
  OK(DRIVER(cuStreamDestroy_v2)(blocking));
  OK(DRIVER(cuStreamDestroy_v2)(free));
}

TEST_CASE("blocking streams wait for the legacy stream") {
  usePrimaryContext();
  const CUstream blocking = create(CU_STREAM_DEFAULT);
  Gate gate;
  std::atomic<bool> after = false, perThread = false;
  gate.close(nullptr);
  OK(DRIVER(cuLaunchHostFunc)(blocking, setTrue, &after));
  OK(DRIVER(cuLaunchHostFunc)(CU_STREAM_PER_THREAD, setTrue, &perThread));
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(blocking));
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(CU_STREAM_PER_THREAD));
  CHECK(!after);
  CHECK(!perThread);
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(blocking));
  OK(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  CHECK(after);
  CHECK(perThread);
  OK(DRIVER(cuStreamDestroy_v2)(blocking));
}

TEST_CASE("each thread has a default stream of its own") {
  const CUcontext context = usePrimaryContext();
  Gate gate;
  gate.close(CU_STREAM_PER_THREAD);
  std::atomic<bool> ran = false;
  std::thread([&] {
    OK(DRIVER(cuCtxSetCurrent)(context));
    OK(DRIVER(cuLaunchHostFunc)(CU_STREAM_PER_THREAD, setTrue, &ran));
    OK(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
  }).join();
  CHECK(ran);
  EXPECT(CUDA_ERROR_NOT_READY, DRIVER(cuStreamQuery)(CU_STREAM_PER_THREAD));
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD));
}

struct Called {
  CUstream stream = nullptr;
  CUresult status = CUDA_ERROR_UNKNOWN;
  CUresult inside = CUDA_SUCCESS;
};

void callback(CUstream stream, CUresult status, void* data) {
  auto& called = *static_cast<Called*>(data);
  CUdeviceptr p = 0;
  called = {stream, status, DRIVER(cuMemAlloc_v2)(&p, 16)};
}

TEST_CASE("a callback is told the status and may call nothing") {
  usePrimaryContext();
  const CUstream stream = create();
  Called called;
  OK(DRIVER(cuStreamAddCallback)(stream, callback, &called, 0));
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(called.stream == stream);
  CHECK(called.status == CUDA_SUCCESS);
  CHECK(called.inside == CUDA_ERROR_NOT_PERMITTED);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamAddCallback)(stream, callback, &called, 1));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuLaunchHostFunc)(stream, nullptr, nullptr));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

TEST_CASE("a stream writes words in its order") {
  usePrimaryContext();
  const CUstream stream = create();
  Gate gate;
  std::uint32_t* word = nullptr;
  OK(DRIVER(cuMemHostAlloc)(reinterpret_cast<void**>(&word), sizeof *word, 0));
  const auto address = reinterpret_cast<CUdeviceptr>(word);
  const std::atomic_ref<std::uint32_t> seen(*word);
  seen = 7;
  gate.close(stream);
  OK(DRIVER(cuStreamWriteValue32_v2)(stream, address, 8, 0));
  CHECK(seen == 7);
  gate.open();
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(seen == 8);
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamWriteValue32_v2)(stream, address + 2, 8, 0));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamWriteValue32_v2)(stream, address, 8, 2));
  EXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuStreamWriteValue32_v2)(stream, 64, 8, 0));
  OK(DRIVER(cuMemFreeHost)(word));
}

TEST_CASE("a destroyed stream finishes its work") {
  usePrimaryContext();
  const CUstream stream = create();
  Gate gate;
  std::atomic<bool> ran = false;
  gate.close(stream);
  OK(DRIVER(cuLaunchHostFunc)(stream, setTrue, &ran));
  OK(DRIVER(cuStreamDestroy_v2)(stream));
  CHECK(!ran);
  gate.open();
  OK(DRIVER(cuCtxSynchronize)());
  CHECK(ran);
}

void count(void* counter) { ++*static_cast<std::atomic<unsigned>*>(counter); }

TEST_CASE("a program that submits too much waits") {
  usePrimaryContext();
  constexpr unsigned kMany = 100'000;
  const CUstream stream = create();
  std::atomic<unsigned> submitted = 0, ran = 0;
  CUcontext context = nullptr;
  OK(DRIVER(cuCtxGetCurrent)(&context));
  Gate gate;
  gate.close(stream);
  {
    const unit::Waiter submitter([&] {
      OK(DRIVER(cuCtxSetCurrent)(context));
      for (; submitted < kMany; ++submitted) OK(DRIVER(cuLaunchHostFunc)(stream, count, &ran));
    });
    CHECK(submitter.waits());
    CHECK(ran == 0);
    gate.open();
  }
  OK(DRIVER(cuStreamSynchronize)(stream));
  CHECK(ran == kMany);
  OK(DRIVER(cuStreamDestroy_v2)(stream));
}

}  // namespace
