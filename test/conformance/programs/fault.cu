// A kernel writes where nothing is; from then on every call of the process says so.
// conformance:
#include "show.h"

__global__ void write(int* where) { *where = 1; }
__global__ void nothing() {}

int main() {
  int *d = nullptr, x = 0;
  void* host = nullptr;
  cudaStream_t stream = nullptr, another = nullptr;
  cudaEvent_t event = nullptr, later = nullptr;
  std::size_t available = 0, total = 0;
  int device = -1, count = 0;
  SHOW(cudaMalloc(&d, sizeof x));
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaEventCreate(&event));
  write<<<1, 1>>>(d);
  showLaunch("a good write");
  write<<<1, 1>>>(reinterpret_cast<int*>(0x40));
  showLaunch("a bad write");
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaMalloc(&host, 16));
  SHOW(cudaFree(d));
  SHOW(cudaMemcpy(&x, d, sizeof x, cudaMemcpyDeviceToHost));
  SHOW(cudaMemcpyAsync(d, &x, sizeof x, cudaMemcpyHostToDevice, stream));
  SHOW(cudaMemset(d, 0, sizeof x));
  SHOW(cudaMemGetInfo(&available, &total));
  SHOW(cudaMallocHost(&host, 16));
  nothing<<<1, 1>>>();
  SHOW(cudaGetLastError());
  SHOW(cudaStreamCreate(&another));
  SHOW(cudaStreamQuery(stream));
  SHOW(cudaStreamSynchronize(stream));
  SHOW(cudaEventCreate(&later));
  SHOW(cudaEventRecord(event, stream));
  SHOW(cudaEventQuery(event));
  SHOW(cudaEventSynchronize(event));
  SHOW(cudaDeviceSynchronize());
  SHOW(cudaGetDevice(&device));
  SHOW(cudaGetDeviceCount(&count));
  SHOW(cudaPeekAtLastError());
}
