// Registered blocks of the heap share pages with other blocks, which other threads write all the time: no write is lost.
// conformance: judges=itself
#include <atomic>
#include <thread>
#include <vector>

#include "host_register.h"

/// Counts up in words that lie before, behind and inside of what is registered.
struct Writer {
  volatile unsigned* word;
  unsigned written = 0;
};

int main() {
  EXPECT_OK(cudaFree(nullptr));
  constexpr int blocks = 64;
  std::vector<unsigned*> heap;
  for (int i = 0; i < blocks; ++i) heap.push_back(static_cast<unsigned*>(std::calloc(700, sizeof(unsigned))));

  std::atomic<bool> stop{false};
  std::vector<Writer> writers;
  for (int i = 0; i < blocks; ++i) writers.push_back({heap[i] + i * 10});
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      while (!stop) {
        for (int i = t; i < blocks; i += 2) *writers[i].word = ++writers[i].written;
      }
    });
  }
  int registered = 0, refused = 0;
  for (int round = 0; round < 30; ++round) {
    // Every fourth block: its neighbours are never registered.
    for (int i = round % 4; i < blocks; i += 4) {
      if (cudaHostRegister(heap[i], 700 * sizeof(unsigned), cudaHostRegisterDefault) == cudaSuccess)
        ++registered;
      else
        ++refused;
    }
    for (int i = round % 4; i < blocks; i += 4) cudaHostUnregister(heap[i]);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  cudaGetLastError();
  EXPECT(registered > 0);
  int lost = 0;
  for (const Writer& writer : writers) lost += *writer.word != writer.written;
  EXPECT(lost == 0);

  // Two blocks with a page in common.
  auto* pages = static_cast<char*>(std::aligned_alloc(page, 4 * page));
  auto* first = reinterpret_cast<int*>(pages);
  auto* second = reinterpret_cast<int*>(pages + page + page / 2);
  first[0] = second[0] = 1;
  EXPECT_OK(cudaHostRegister(first, page + page / 2, cudaHostRegisterDefault));
  const cudaError_t both = cudaHostRegister(second, page, cudaHostRegisterDefault);
  std::printf("a block that begins in a registered page: %s\n", resultName(both));
  cudaGetLastError();
  addToAll<<<1, 32>>>(first, 1, 1);
  if (both == cudaSuccess) addToAll<<<1, 32>>>(second, 1, 2);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(first[0] == 2 && second[0] == (both == cudaSuccess ? 3 : 1));
  EXPECT_OK(cudaHostUnregister(first));
  EXPECT(first[0] == 2);
  if (both == cudaSuccess) {
    addToAll<<<1, 32>>>(second, 1, 2);
    EXPECT_OK(cudaDeviceSynchronize());
    EXPECT(second[0] == 5);
    EXPECT_OK(cudaHostUnregister(second));
    EXPECT(second[0] == 5);
  }
  std::free(pages);
  for (unsigned* block : heap) std::free(block);
  return verdict();
}
