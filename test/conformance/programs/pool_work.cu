// Memory of a pool while work is under way: who waits, what is refused, and who gets it next.
// conformance: flags=-lcuda
#include "show_driver.h"

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr unsigned long long kMost = 10'000'000'000;  ///< ns

/// Runs until the host writes to `*go`. The limit is for one that waits for this kernel instead.
__global__ void hold(const volatile unsigned* go) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (*go == 0 && now - begin < kMost);
}

/// Work of streams that ends when the host says so.
class Work {
 public:
  Work() { SHOW(cudaHostAlloc(&go_, sizeof(*go_), cudaHostAllocMapped)); }
  void begin(cudaStream_t stream) { hold<<<1, 1, 0, stream>>>(go_); }
  void end() { *go_ = 1; }
  void endAndWait() {
    end();
    SHOW(cudaDeviceSynchronize());
    *go_ = 0;
  }

 private:
  volatile unsigned* go_ = nullptr;
};

static const char* state(cudaStream_t stream) {
  return cudaStreamQuery(stream) == cudaSuccess ? "done" : "under way";
}

/// Which work a free waits for.
static void frees(Work& work, cudaStream_t stream, cudaStream_t other) {
  void* memory = nullptr;
  SHOW(cudaMallocAsync(&memory, kMiB, stream));
  SHOW(cudaStreamSynchronize(stream));
  work.begin(stream);
  work.begin(other);
  SHOW(cudaFree(memory));
  std::printf("cudaFree of pool memory: its stream is %s, another is %s\n", state(stream), state(other));
  work.endAndWait();

  SHOW(cudaMallocAsync(&memory, kMiB, stream));
  SHOW(cudaStreamSynchronize(stream));
  work.begin(stream);
  SHOW(cudaFreeAsync(memory, stream));
  std::printf("cudaFreeAsync: its stream is %s\n", state(stream));
  work.endAndWait();
}

/// Copies and memsets that leave an allocation.
static void bounds(cudaStream_t stream) {
  static char bytes[2 * kMiB];
  char *first = nullptr, *second = nullptr;
  SHOW(cudaMallocAsync(reinterpret_cast<void**>(&first), 4096, stream));
  SHOW(cudaMallocAsync(reinterpret_cast<void**>(&second), 4096, stream));
  SHOW(cudaStreamSynchronize(stream));
  std::printf("copies beyond the end by 1 byte and by 4 KiB\n");
  SHOW(cudaMemcpy(bytes, first, 4097, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(bytes, first, 8192, cudaMemcpyDeviceToHost));
  std::printf("memset beyond the end by 1 byte\n");
  SHOW(cudaMemset(second, 0, 4097));
  SHOW(cudaFreeAsync(second, stream));
  SHOW(cudaFreeAsync(first, stream));
  SHOW(cudaStreamSynchronize(stream));
}

/// Memory that a stream has freed, for another stream after the work.
static void reuse(Work& work, cudaStream_t stream, cudaStream_t other) {
  void *before = nullptr, *after = nullptr;
  SHOW(cudaMallocAsync(&before, 64 * kMiB, stream));
  work.begin(stream);
  SHOW(cudaFreeAsync(before, stream));
  work.end();
  while (cudaStreamQuery(stream) == cudaErrorNotReady) continue;
  SHOW(cudaMallocAsync(&after, 64 * kMiB, other));
  std::printf("after the work, another stream gets the same memory: %s\n", yesNo(after == before));
  SHOW(cudaFreeAsync(after, other));
  SHOW(cudaDeviceSynchronize());
}

int main() {
  cudaStream_t stream, other;
  SHOW(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SHOW(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  Work work;
  frees(work, stream, other);
  bounds(stream);
  reuse(work, stream, other);
}
