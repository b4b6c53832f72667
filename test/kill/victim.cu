// Makes CUDA calls of all kinds from two threads until it is killed or a call fails, and says in a shared page what it is doing.
// The page holds four 64-bit words a thread: state (0 not begun, 1 inside a call, 2 between calls, 3 ended), calls made, the error that
// ended it, and when (CLOCK_MONOTONIC, nanoseconds).
#include <cuda_runtime.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>
#include <vector>

struct Diary {
  std::atomic<std::uint64_t> state, calls, error, when;
};

static std::uint64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

__global__ void work(int* x, int turns) {
  int value = x[threadIdx.x];
  for (int i = 0; i < turns; ++i) value = value * 3 + i;
  x[threadIdx.x] = value;
}

class Victim {
 public:
  explicit Victim(Diary& diary) : diary_(diary) {}

  void run() {
    for (int round = 0; everything(round); ++round) {
    }
    diary_.state = 3;
  }

 private:
  bool did(cudaError_t result) {
    diary_.calls.fetch_add(1);
    diary_.state = 2;
    if (result == cudaSuccess) return true;
    diary_.when = now();
    diary_.error = result;
    return false;
  }

  template <typename Call>
  bool make(Call call) {
    diary_.state = 1;
    return did(call());
  }

  bool everything(int round) {
    const std::size_t bytes = std::size_t{1} << (10 + round % 12);
    std::vector<char> ordinary(bytes, 1);
    void *d = nullptr, *pool = nullptr, *pinned = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    return make([&] { return cudaMalloc(&d, bytes); }) && make([&] { return cudaMallocHost(&pinned, bytes); }) &&
           make([&] { return cudaStreamCreate(&stream); }) && make([&] { return cudaEventCreate(&event); }) &&
           make([&] { return cudaMemcpy(d, ordinary.data(), bytes, cudaMemcpyHostToDevice); }) &&
           make([&] { return cudaMallocAsync(&pool, bytes, stream); }) && make([&] {
             work<<<4, 64, 0, stream>>>(static_cast<int*>(d), 1000);
             return cudaGetLastError();
           }) &&
           make([&] { return cudaMemcpyAsync(pinned, d, bytes, cudaMemcpyDeviceToHost, stream); }) &&
           make([&] { return cudaFreeAsync(pool, stream); }) && make([&] { return cudaEventRecord(event, stream); }) &&
           make([&] { return cudaStreamSynchronize(stream); }) &&
           make([&] { return cudaMemcpy(ordinary.data(), d, bytes, cudaMemcpyDeviceToHost); }) &&
           make([&] { return cudaEventDestroy(event); }) && make([&] { return cudaStreamDestroy(stream); }) &&
           make([&] { return cudaFreeHost(pinned); }) && make([&] { return cudaFree(d); });
  }

  Diary& diary_;
};

int main(int argc, char** argv) {
  const int file = argc == 2 ? open(argv[1], O_RDWR) : -1;
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return std::fprintf(stderr, "usage: victim FILE (of 4096 bytes)\n"), 2;
  auto* diaries = static_cast<Diary*>(page);
  std::thread other([&] { Victim(diaries[1]).run(); });
  Victim(diaries[0]).run();
  other.join();
  return 3;
}
