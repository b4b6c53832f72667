// Nothing to do, and nothing given: zero-sized calls and null handles.
// conformance:
#include "show.h"

int main() {
  char *d = nullptr, *h = nullptr, *empty = reinterpret_cast<char*>(1), x[8] = {};
  std::size_t pitch = 0;
  float time = 0;
  SHOW(cudaFree(nullptr));
  SHOW(cudaFreeHost(nullptr));
  SHOW(cudaMalloc(&empty, 0));
  std::printf("null: %s\n", yesNo(empty == nullptr));
  SHOW(cudaMalloc(nullptr, 16));
  SHOW(cudaMallocPitch(&empty, &pitch, 0, 10));
  SHOW(cudaMalloc(&d, 8));
  SHOW(cudaMallocHost(&h, 8));
  SHOW(cudaMemcpy(d, x, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(x, d, 0, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(nullptr, x, 8, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy(d, nullptr, 8, cudaMemcpyDeviceToDevice));
  SHOW(cudaMemcpy(d, x, 8, static_cast<cudaMemcpyKind>(9)));
  SHOW(cudaMemcpyAsync(d, h, 0, cudaMemcpyHostToDevice, nullptr));
  SHOW(cudaMemset(d, 1, 0));
  SHOW(cudaMemset(nullptr, 1, 0));
  SHOW(cudaMemset(nullptr, 1, 8));
  SHOW(cudaMemsetAsync(d, 1, 0, nullptr));
  SHOW(cudaMemcpy2D(d, 8, x, 8, 0, 1, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(d, 8, x, 8, 8, 0, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2D(d, 4, x, 8, 8, 1, cudaMemcpyHostToDevice));
  SHOW(cudaStreamSynchronize(nullptr));
  SHOW(cudaStreamQuery(nullptr));
  SHOW(cudaStreamDestroy(nullptr));
  SHOW(cudaStreamCreate(nullptr));
  SHOW(cudaEventCreate(nullptr));
  SHOW(cudaEventDestroy(nullptr));
  SHOW(cudaEventRecord(nullptr, nullptr));
  SHOW(cudaEventQuery(nullptr));
  SHOW(cudaEventSynchronize(nullptr));
  SHOW(cudaEventElapsedTime(&time, nullptr, nullptr));
  SHOW(cudaStreamWaitEvent(nullptr, nullptr, 0));
  SHOW(cudaMemGetInfo(nullptr, nullptr));
  SHOW(cudaGetLastError());
  SHOW(cudaMemcpy(x, d, 8, cudaMemcpyDeviceToHost));
  SHOW(cudaFree(d));
  SHOW(cudaFreeHost(h));
}
