// Rate of launches by 8 threads, each into a stream of its own: the median of many rounds, because
// the fastest round depends on how the threads happen to meet.
#include <barrier>
#include <thread>

#include "measure.h"

__global__ void nothing() {}

int main() {
  constexpr int threads = 8, launches = 5000, rounds = 40;
  std::barrier together(threads + 1);
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i)
    workers.emplace_back([&] {
      cudaStream_t stream = nullptr;
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      for (int round = 0; round < rounds; ++round) {
        together.arrive_and_wait();
        for (int launch = 0; launch < launches; ++launch) nothing<<<1, 32, 0, stream>>>();
        CHECK(cudaStreamSynchronize(stream));
        together.arrive_and_wait();
      }
    });
  const double time = median(rounds, [&] {
    together.arrive_and_wait();
    together.arrive_and_wait();
  });
  for (std::thread& worker : workers) worker.join();
  report("8 threads launching to 8 streams", threads * launches / time, "1/s");
}
