// Variables of the device: initial values, addresses, copies to and from them, by one kernel and the next.
// conformance:
#include "show.h"

struct Record {
  double value;
  int list[5];
};

__device__ int number = 42;
__device__ Record record = {2.5, {1, 2, 3, 4, 5}};
__device__ float zeros[1000];
__device__ int* pointer;
__device__ const char text[] = "device text";

__global__ void change() {
  if (threadIdx.x == 0) ++number;
  record.list[threadIdx.x] *= 10;
  zeros[999] = 1.5f;
  if (pointer) *pointer = text[3];
}

int main() {
  int host = 0, *d = nullptr;
  Record copy = {};
  static float floats[1000];
  SHOW(cudaMemcpyFromSymbol(&host, number, sizeof host));
  std::printf("number %d\n", host);
  SHOW(cudaMalloc(&d, sizeof *d));
  SHOW(cudaMemcpyToSymbol(pointer, &d, sizeof d));
  change<<<1, 5>>>();
  showLaunch("change");
  SHOW(cudaMemcpyFromSymbol(&host, number, sizeof host));
  SHOW(cudaMemcpyFromSymbol(&copy, record, sizeof copy));
  SHOW(cudaMemcpyFromSymbol(floats, zeros, sizeof floats));
  std::printf("number %d, record %g %d %d %d, zeros %g %g\n", host, copy.value, copy.list[0], copy.list[3], copy.list[4], floats[998],
              floats[999]);
  SHOW(cudaMemcpy(&host, d, sizeof host, cudaMemcpyDeviceToHost));
  std::printf("letter %c\n", host);
  void* address = nullptr;
  std::size_t size = 0;
  SHOW(cudaGetSymbolAddress(&address, record));
  SHOW(cudaGetSymbolSize(&size, record));
  std::printf("size %zu\n", size);
  copy.value = -1;
  SHOW(cudaMemcpy(address, &copy, sizeof copy.value, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpyFromSymbolAsync(&copy, record, sizeof copy, 0, cudaMemcpyDeviceToHost, nullptr));
  SHOW(cudaStreamSynchronize(nullptr));
  std::printf("record %g %d\n", copy.value, copy.list[1]);
  SHOW(cudaMemcpyToSymbolAsync(number, &host, sizeof host, 0, cudaMemcpyHostToDevice, nullptr));
  SHOW(cudaMemcpyFromSymbol(&host, number, sizeof host, 2));
  SHOW(cudaGetSymbolAddress(&address, &host));
  SHOW(cudaGetLastError());
}
