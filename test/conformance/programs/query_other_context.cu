// A query answers at once that a stream is not done, whatever was waited for before: another
// context, or the same stream before another thread gave it work. That ends behind the answers.
// conformance: flags=-lcuda judges=itself
#include <atomic>
#include <thread>

#include "expect.h"
#include "show_driver.h"

static std::atomic<bool> open{false};
static void CUDA_CB waitUntilOpen(void*) {
  while (!open) std::this_thread::yield();
}

static void begin(CUstream stream) {
  open = false;
  EXPECT(cuLaunchHostFunc(stream, waitUntilOpen, nullptr) == CUDA_SUCCESS);
}
static void isBusy(CUstream stream) {
  for (int i = 0; i < 3; ++i) EXPECT(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
}
static void end(CUstream stream) {
  open = true;
  EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  EXPECT(cuStreamQuery(stream) == CUDA_SUCCESS);
}

int main() {
  CUcontext primary = nullptr, created = nullptr;
  CUstream stream = nullptr, ofCreated = nullptr;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuCtxCreate(&created, nullptr, 0, 0) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&ofCreated, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);

  // The current context is idle, and the stream is another one's.
  begin(ofCreated);
  EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
  EXPECT(cuCtxSynchronize() == CUDA_SUCCESS);
  isBusy(ofCreated);
  end(ofCreated);

  // The thread has waited for the stream. Then another thread has given it work.
  for (int i = 0; i < 20; ++i) {
    EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    std::thread([&] {
      EXPECT(cuCtxSetCurrent(primary) == CUDA_SUCCESS);
      begin(stream);
    }).join();
    isBusy(stream);
    end(stream);
  }

  // The thread has waited for another stream.
  begin(stream);
  EXPECT(cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  isBusy(stream);
  end(stream);

  EXPECT(cuStreamDestroy(stream) == CUDA_SUCCESS);
  EXPECT(cuCtxDestroy(created) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  return verdict();
}
