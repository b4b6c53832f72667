// Makes all kinds of CUDA calls from two threads until it is killed or a call fails, and records
// them in its diary.
#include "diary.h"

#include <thread>
#include <vector>

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
  template <typename Call>
  bool make(Call call) {
    return diary_.make(call);
  }

  bool everything(int round) {
    const std::size_t bytes = std::size_t{1} << (10 + round % 12);
    std::vector<char> ordinary(bytes, 1);
    void *d = nullptr, *pool = nullptr, *pinned = nullptr;
    cudaStream_t stream = nullptr;
    cudaEvent_t event = nullptr;
    return make([&] { return cudaMalloc(&d, bytes); }) &&
           make([&] { return cudaMallocHost(&pinned, bytes); }) &&
           make([&] { return cudaStreamCreate(&stream); }) &&
           make([&] { return cudaEventCreate(&event); }) &&
           make([&] { return cudaMemcpy(d, ordinary.data(), bytes, cudaMemcpyHostToDevice); }) &&
           make([&] { return cudaMallocAsync(&pool, bytes, stream); }) && make([&] {
             work<<<4, 64, 0, stream>>>(static_cast<int*>(d), 1000);
             return cudaGetLastError();
           }) &&
           make(
               [&] { return cudaMemcpyAsync(pinned, d, bytes, cudaMemcpyDeviceToHost, stream); }) &&
           make([&] { return cudaFreeAsync(pool, stream); }) &&
           make([&] { return cudaEventRecord(event, stream); }) &&
           make([&] { return cudaStreamSynchronize(stream); }) &&
           make([&] { return cudaMemcpy(ordinary.data(), d, bytes, cudaMemcpyDeviceToHost); }) &&
           make([&] { return cudaEventDestroy(event); }) &&
           make([&] { return cudaStreamDestroy(stream); }) &&
           make([&] { return cudaFreeHost(pinned); }) && make([&] { return cudaFree(d); });
  }

  Diary& diary_;
};

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: victim FILE (of 4096 bytes)\n"), 2;
  DiaryPage& page = DiaryPage::open(argv[1]);
  std::thread other([&] { Victim(page.threads[1]).run(); });
  Victim(page.threads[0]).run();
  other.join();
  return 3;
}
