// The last error belongs to the thread that made it; the current device too.
// conformance:
#include <thread>

#include "show.h"

int main() {
  void* p = nullptr;
  SHOW(cudaMemcpy(nullptr, nullptr, 16, cudaMemcpyHostToDevice));
  std::thread([] { SHOW(cudaPeekAtLastError()); }).join();
  SHOW(cudaPeekAtLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaSetDevice(4096));
  SHOW(cudaMalloc(&p, 16));
  SHOW(cudaGetLastError());
  SHOW(cudaPeekAtLastError());
  SHOW(cudaFree(p));
  SHOW(cudaFree(p));
  SHOW(cudaGetLastError());
  std::thread([] {
    void* mine = nullptr;
    SHOW(cudaMalloc(&mine, 16));
    SHOW(cudaFree(mine));
  }).join();
}
