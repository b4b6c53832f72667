// Queries of events and streams that are repeated: never success before the work is done, and success as soon as a wait has returned. Polls, threads, captures, graphs and reused handles.
// conformance: judges=itself
#include <atomic>
#include <thread>
#include <vector>

#include "expect.h"

static std::atomic<bool> open{false};

static void CUDART_CB waitUntilOpen(void*) {
  while (!open) std::this_thread::yield();
}

__global__ void store(volatile unsigned* at, unsigned value) { *at = value; }

static cudaStream_t stream, other;
static cudaEvent_t event;
static volatile unsigned* word;

/// Many answers in a row, all success.
static bool done() {
  bool all = true;
  for (int i = 0; i < 100; ++i) all = all && cudaEventQuery(event) == cudaSuccess && cudaStreamQuery(stream) == cudaSuccess;
  return all;
}

/// Makes the stream wait.
static void close() {
  open = false;
  EXPECT_OK(cudaLaunchHostFunc(stream, waitUntilOpen, nullptr));
}

static void release() {
  open = true;
  EXPECT_OK(cudaStreamSynchronize(stream));
}

static void polls() {
  for (unsigned round = 1; round <= 2000; ++round) {
    store<<<1, 1, 0, stream>>>(word, round);
    EXPECT_OK(cudaEventRecord(event, stream));
    cudaError_t answer;
    while ((answer = round % 2 ? cudaEventQuery(event) : cudaStreamQuery(stream)) == cudaErrorNotReady) continue;
    EXPECT_OK(answer);
    EXPECT(*word == round);
    if (round % 2) EXPECT(cudaEventQuery(event) == cudaSuccess && *word == round);
  }
  EXPECT_OK(cudaStreamSynchronize(stream));
}

/// Success, often; then work that is not done; then success again.
static void closes() {
  for (int round = 0; round < 50; ++round) {
    EXPECT(done());
    close();
    EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
    EXPECT(cudaEventQuery(event) == cudaSuccess);  // its record is before that
    EXPECT_OK(cudaEventRecord(event, stream));
    EXPECT(cudaEventQuery(event) == cudaErrorNotReady);
    EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
    EXPECT(cudaStreamQuery(other) == cudaSuccess);
    release();
  }
  EXPECT(done());
}

/// Another thread records; then this one knows it.
static void threads() {
  for (int round = 0; round < 50; ++round) {
    EXPECT(done());
    std::thread([] {
      EXPECT_OK(cudaFree(nullptr));  // the context is current
      EXPECT(done());
      close();
      EXPECT_OK(cudaEventRecord(event, stream));
    }).join();
    EXPECT(cudaEventQuery(event) == cudaErrorNotReady);
    EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
    std::thread(release).join();
    EXPECT(done());
  }
}

/// Many threads poll events of their own, while each knows what its own work has written.
static void crowd() {
  unsigned* words = nullptr;
  EXPECT_OK(cudaMallocHost(&words, 4096));
  std::vector<std::thread> all;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 6; ++i) {
    all.emplace_back([&wrong, mine = words + 16 * i] {
      cudaStream_t own;
      cudaEvent_t ended;
      wrong += cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking) != cudaSuccess;
      wrong += cudaEventCreateWithFlags(&ended, cudaEventDisableTiming) != cudaSuccess;
      for (unsigned round = 1; round <= 300; ++round) {
        store<<<1, 1, 0, own>>>(mine, round);
        wrong += cudaEventRecord(ended, own) != cudaSuccess;
        for (int polls = 0; polls < 3; ++polls) {
          while (cudaEventQuery(ended) == cudaErrorNotReady) continue;
          wrong += *static_cast<volatile unsigned*>(mine) != round;
        }
      }
      wrong += cudaEventDestroy(ended) != cudaSuccess;
      wrong += cudaStreamDestroy(own) != cudaSuccess;
    });
  }
  for (auto& one : all) one.join();
  EXPECT(wrong == 0);
  EXPECT_OK(cudaFreeHost(words));
}

/// A new event may get the handle of one that was done.
static void reused() {
  for (int round = 0; round < 20; ++round) {
    cudaEvent_t old = nullptr, fresh = nullptr;
    EXPECT_OK(cudaEventCreate(&old));
    EXPECT_OK(cudaEventRecord(old, stream));
    EXPECT_OK(cudaEventSynchronize(old));
    for (int i = 0; i < 10; ++i) EXPECT(cudaEventQuery(old) == cudaSuccess);
    EXPECT_OK(cudaEventDestroy(old));
    EXPECT_OK(cudaEventCreate(&fresh));
    EXPECT(cudaEventQuery(fresh) == cudaSuccess);
    close();
    EXPECT_OK(cudaEventRecord(fresh, stream));
    EXPECT(cudaEventQuery(fresh) == cudaErrorNotReady);
    release();
    EXPECT(cudaEventQuery(fresh) == cudaSuccess);
    EXPECT_OK(cudaEventDestroy(fresh));
  }
}

/// A graph records the event.
static void graph() {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaGraphNode_t node = nullptr;
  EXPECT_OK(cudaGraphCreate(&graph, 0));
  EXPECT_OK(cudaGraphAddEventRecordNode(&node, graph, nullptr, 0, event));
  EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
  EXPECT_OK(cudaGraphUpload(exec, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int round = 0; round < 10; ++round) {
    EXPECT(done());
    close();
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT(cudaStreamQuery(stream) == cudaErrorNotReady);
    release();
    EXPECT(done());
  }
  EXPECT_OK(cudaGraphExecDestroy(exec));
  EXPECT_OK(cudaGraphDestroy(graph));
}

/// A stream that captures may not be queried.
static void capture() {
  cudaGraph_t graph = nullptr;
  EXPECT(done());
  EXPECT_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  const cudaError_t answer = cudaStreamQuery(stream);
  EXPECT(answer != cudaSuccess && answer != cudaErrorNotReady);
  EXPECT(cudaStreamEndCapture(stream, &graph) != cudaSuccess);
  EXPECT(graph == nullptr);
  (void)cudaGetLastError();
  EXPECT(done());
}

int main() {
  void* memory = nullptr;
  EXPECT_OK(cudaMallocHost(&memory, 4096));
  word = static_cast<unsigned*>(memory);
  EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  EXPECT_OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  EXPECT_OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  polls();
  closes();
  threads();
  crowd();
  reused();
  graph();
  capture();
  return verdict();
}
