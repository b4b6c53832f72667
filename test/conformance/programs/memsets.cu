// Memsets of every kind: bytes, words, rectangles, asynchronous, through both interfaces.
// conformance: flags=-lcuda
#include "show_driver.h"

int main() {
  static unsigned char host[65536];
  char* runtime = nullptr;
  SHOW(cudaMalloc(&runtime, sizeof host));
  const CUdeviceptr d = reinterpret_cast<CUdeviceptr>(runtime);
  auto show = [&] {
    SHOW(cudaMemcpy(host, runtime, sizeof host, cudaMemcpyDeviceToHost));
    std::printf("  %08x\n", digest(host, sizeof host));
  };
  cudaStream_t stream = nullptr;
  SHOW(cudaStreamCreate(&stream));
  SHOW(cudaMemset(runtime, 0xa5, sizeof host));
  show();
  SHOW(cudaMemset(runtime + 1, 0x1fe, 4999));
  show();
  SHOW(cudaMemsetAsync(runtime + 3, 17, 10001, stream));
  SHOW(cudaMemset2DAsync(runtime + 11000, 256, 3, 77, 100, stream));
  SHOW(cudaStreamSynchronize(stream));
  show();
  SHOW(cuMemsetD8(d + 40001, 0x42, 333));
  SHOW(cuMemsetD16(d + 41000, 0x1234, 501));
  SHOW(cuMemsetD32(d + 43000, 0xdeadbeef, 77));
  show();
  SHOW(cuMemsetD2D8(d + 45000, 512, 0x55, 100, 9));
  SHOW(cuMemsetD2D16(d + 50000, 512, 0xabcd, 100, 9));
  SHOW(cuMemsetD2D32(d + 55000, 512, 0x01020304, 100, 9));
  show();
  SHOW(cuMemsetD8Async(d + 101, 0x11, 7, stream));
  SHOW(cuMemsetD16Async(d + 202, 0x2222, 7, stream));
  SHOW(cuMemsetD32Async(d + 304, 0x33333333, 7, stream));
  SHOW(cuMemsetD2D8Async(d + 400, 50, 0x44, 7, 3, stream));
  SHOW(cuMemsetD2D16Async(d + 600, 50, 0x5555, 7, 3, stream));
  SHOW(cuMemsetD2D32Async(d + 800, 60, 0x66666666, 7, 3, stream));
  SHOW(cuStreamSynchronize(stream));
  show();
  SHOW(cuMemsetD16(d + 1, 1, 4));
  SHOW(cuMemsetD32(d + 2, 1, 4));
  SHOW(cuMemsetD2D32(d, 8, 1, 4, 2));
  SHOW(cuMemsetD32(0, 1, 4));
  show();
  SHOW(cudaStreamDestroy(stream));
  SHOW(cudaFree(runtime));
}
