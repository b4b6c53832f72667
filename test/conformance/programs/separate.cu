// Two files compiled apart (-rdc=true) and linked on the device: a function, a variable and constants of the other file.
// conformance: flags=-rdc=true files=separate_part.cu
#include "show.h"

extern __device__ int scale(int x);
extern __device__ int calls;
extern __constant__ int weights[4];
__device__ int offset = 5;

__global__ void useOtherFile(int* out) {
  const int i = threadIdx.x;
  out[i] = scale(i) * weights[i % 4];
}

int fromOtherFile();

int main() {
  int *d = nullptr, out[8] = {}, counted = 0;
  SHOW(cudaMalloc(&d, sizeof out));
  useOtherFile<<<1, 8>>>(d);
  showLaunch("useOtherFile");
  SHOW(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int value : out) std::printf("%d ", value);
  std::printf("\n");
  SHOW(cudaMemcpyFromSymbol(&counted, calls, sizeof counted));
  std::printf("calls %d\n", counted);
  std::printf("a kernel of the other file: %d\n", fromOtherFile());
  SHOW(cudaFree(d));
}
