// Random calls of several host threads beside each other, in streams, memory and graphs of their own, and in turns on memory that events of all threads order.
// conformance: judges=itself
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "expect.h"

constexpr unsigned threads = 4, steps = 250;

__global__ void step(unsigned* x, unsigned n, unsigned factor) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = x[i] * factor + i;
}

/// Device memory, and what it holds behind the last work.
struct Memory {
  unsigned* at = nullptr;
  std::vector<unsigned> content;
  cudaEvent_t last = nullptr;

  void expectStep(unsigned factor) {
    for (unsigned i = 0; i < content.size(); ++i) content[i] = content[i] * factor + i;
  }
  void launchStep(unsigned factor, cudaStream_t stream) const {
    step<<<(content.size() + 63) / 64, 64, 0, stream>>>(at, content.size(), factor);
    EXPECT_OK(cudaGetLastError());
  }
};

static std::mutex sharedMutex;
static Memory shared;

class Sequence {
 public:
  explicit Sequence(unsigned seed) : random_(seed) {
    for (cudaStream_t& stream : streams_)
      EXPECT_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&own_.last, &shared_})
      EXPECT_OK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    allocate(streams_[0]);
  }
  /// The event of the shared memory stays, because other threads wait for it.
  ~Sequence() {
    copyOut(own_, streams_[0]);
    EXPECT_OK(cudaFree(own_.at));
    EXPECT_OK(cudaEventDestroy(own_.last));
    for (cudaStream_t stream : streams_) EXPECT_OK(cudaStreamDestroy(stream));
  }
  Sequence(const Sequence&) = delete;

  void next() {
    const unsigned choice = pick(10);
    const cudaStream_t stream = streams_[pick(2)];
    if (choice == 0) return refused();
    if (choice == 1) return inShortThread();
    if (choice <= 3) {
      const std::lock_guard lock(sharedMutex);
      work(shared, stream);
      EXPECT_OK(cudaEventRecord(shared_, stream));
      shared.last = shared_;
      return;
    }
    if (choice == 4) replace(stream);
    work(own_, stream);
    EXPECT_OK(cudaEventRecord(own_.last, stream));
  }

 private:
  unsigned pick(unsigned below) { return random_() % below; }

  void work(Memory& memory, cudaStream_t stream) {
    if (memory.last != nullptr) EXPECT_OK(cudaStreamWaitEvent(stream, memory.last));
    const unsigned choice = pick(6), factor = 1 + 2 * pick(9);
    const std::size_t bytes = memory.content.size() * sizeof(unsigned);
    if (choice == 0) {
      EXPECT_OK(cudaMemsetAsync(memory.at, 1, bytes, stream));
      memory.content.assign(memory.content.size(), 0x01010101);
    } else if (choice == 1) {
      memory.content.assign(memory.content.size(), factor);
      EXPECT_OK(cudaMemcpyAsync(memory.at, memory.content.data(), bytes, cudaMemcpyHostToDevice,
                                stream));
    } else if (choice == 2) {
      copyOut(memory, stream);
    } else if (choice == 3) {
      capture(memory, stream, factor);
    } else {
      memory.launchStep(factor, stream);
      memory.expectStep(factor);
    }
  }
  void copyOut(const Memory& memory, cudaStream_t stream) {
    std::vector<unsigned> found(memory.content.size());
    if (memory.last != nullptr) EXPECT_OK(cudaStreamWaitEvent(stream, memory.last));
    EXPECT_OK(cudaMemcpyAsync(found.data(), memory.at, found.size() * sizeof(unsigned),
                              cudaMemcpyDeviceToHost, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    EXPECT(found == memory.content);
  }
  void capture(Memory& memory, cudaStream_t stream, unsigned factor) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    EXPECT_OK(cudaStreamBeginCapture(
        stream, pick(2) ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < 3; ++i) memory.launchStep(factor, stream);
    EXPECT_OK(cudaStreamEndCapture(stream, &graph));
    EXPECT_OK(cudaGraphInstantiate(&exec, graph, 0));
    EXPECT_OK(cudaGraphLaunch(exec, stream));
    EXPECT_OK(cudaGraphExecDestroy(exec));
    EXPECT_OK(cudaGraphDestroy(graph));
    for (int i = 0; i < 3; ++i) memory.expectStep(factor);
  }
  void allocate(cudaStream_t stream) {
    const unsigned n = 1 + pick(3000);
    EXPECT_OK(cudaMallocAsync(&own_.at, n * sizeof(unsigned), stream));
    EXPECT_OK(cudaMemsetAsync(own_.at, 0, n * sizeof(unsigned), stream));
    own_.content.assign(n, 0);
    EXPECT_OK(cudaEventRecord(own_.last, stream));
  }
  void replace(cudaStream_t stream) {
    EXPECT_OK(cudaStreamWaitEvent(stream, own_.last));
    EXPECT_OK(cudaFreeAsync(own_.at, stream));
    allocate(stream);
  }
  static void refused() {
    void* none = nullptr;
    EXPECT(cudaMalloc(&none, std::size_t{1} << 50) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  }
  void inShortThread() {
    std::thread([this] { copyOut(own_, cudaStreamPerThread); }).join();
  }

  std::mt19937 random_;
  cudaStream_t streams_[2] = {};
  Memory own_;
  cudaEvent_t shared_ = nullptr;
};

int main() {
  shared.content.assign(500, 0);
  EXPECT_OK(cudaMalloc(&shared.at, 500 * sizeof(unsigned)));
  EXPECT_OK(cudaMemset(shared.at, 0, 500 * sizeof(unsigned)));
  EXPECT_OK(cudaDeviceSynchronize());
  std::vector<std::thread> all;
  for (unsigned seed = 0; seed < threads; ++seed) {
    all.emplace_back([seed] {
      Sequence sequence(seed);
      for (unsigned i = 0; i < steps; ++i) sequence.next();
    });
  }
  for (std::thread& one : all) one.join();
  std::vector<unsigned> found(500);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaMemcpy(found.data(), shared.at, 500 * sizeof(unsigned), cudaMemcpyDeviceToHost));
  EXPECT(found == shared.content);
  return verdict();
}
