// Host functions and callbacks in a stream: they run in the stream's order, once, and see what the work before them wrote.
// conformance:
#include "show.h"

__global__ void add(int* x, int value) { *x += value; }

static int* seen = nullptr;
static char said[100];

// What ran on CUDA's thread is printed by main, so that the lines of two threads cannot mix.
static void CUDART_CB hostFunction(void* data) {
  std::snprintf(said, sizeof said, "host function %s: x = %d", static_cast<const char*>(data), *static_cast<volatile int*>(seen));
}

static void CUDART_CB callback(cudaStream_t, cudaError_t status, void* data) {
  std::snprintf(said, sizeof said, "callback %s: %s, x = %d", static_cast<const char*>(data), resultName(status),
                *static_cast<volatile int*>(seen));
}

static void showSaid() {
  std::printf("%s\n", said);
  said[0] = 0;
}

static void CUDART_CB storeNumber(void* data) { *static_cast<int*>(data) = 1000; }

int main() {
  int *x = nullptr, back = 0;
  static int fromHost = 0;
  cudaStream_t stream = nullptr;
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaMalloc(&x, sizeof back));
  SHOW(cudaMallocHost(&seen, sizeof back));
  SHOW(cudaMemsetAsync(x, 0, sizeof back, stream));
  static char first[] = "first", second[] = "second", third[] = "third";
  add<<<1, 1, 0, stream>>>(x, 5);
  cudaMemcpyAsync(seen, x, sizeof back, cudaMemcpyDeviceToHost, stream);
  SHOW(cudaLaunchHostFunc(stream, hostFunction, first));
  SHOW(cudaStreamSynchronize(stream));
  showSaid();
  add<<<1, 1, 0, stream>>>(x, 20);
  cudaMemcpyAsync(seen, x, sizeof back, cudaMemcpyDeviceToHost, stream);
  SHOW(cudaStreamAddCallback(stream, callback, second, 0));
  SHOW(cudaStreamSynchronize(stream));
  showSaid();
  SHOW(cudaLaunchHostFunc(stream, storeNumber, &fromHost));
  SHOW(cudaStreamSynchronize(stream));
  SHOW(cudaMemcpyAsync(x, &fromHost, sizeof back, cudaMemcpyHostToDevice, stream));
  add<<<1, 1, 0, stream>>>(x, 3);
  cudaMemcpyAsync(seen, x, sizeof back, cudaMemcpyDeviceToHost, stream);
  SHOW(cudaLaunchHostFunc(stream, hostFunction, third));
  SHOW(cudaDeviceSynchronize());
  showSaid();
  SHOW(cudaLaunchHostFunc(nullptr, hostFunction, first));
  SHOW(cudaDeviceSynchronize());
  showSaid();
  SHOW(cudaLaunchHostFunc(stream, nullptr, nullptr));
  SHOW(cudaStreamAddCallback(stream, callback, nullptr, 1));
  SHOW(cudaMemcpy(&back, x, sizeof back, cudaMemcpyDeviceToHost));
  std::printf("x = %d\n", back);
  SHOW(cudaFreeHost(seen));
  SHOW(cudaStreamDestroy(stream));
}
