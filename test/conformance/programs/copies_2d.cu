// Pitched memory and copies of rectangles in all directions.
// conformance:
#include "show.h"

__global__ void fill(unsigned char* base, std::size_t pitch, int width, int height) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width && y < height) base[y * pitch + x] = x * 3 + y * 7;
}

int main() {
  constexpr int width = 333, height = 41;
  unsigned char *a = nullptr, *b = nullptr, *pinned = nullptr;
  std::size_t pitchA = 0, pitchB = 0;
  static unsigned char host[height * 400];
  SHOW(cudaMallocPitch(&a, &pitchA, width, height));
  SHOW(cudaMallocPitch(&b, &pitchB, width + 300, height));
  SHOW(cudaMallocHost(&pinned, sizeof host));
  std::printf("pitch holds a row: %s, is a multiple of 32: %s\n", yesNo(pitchA >= width && pitchB >= width + 300),
              yesNo(pitchA % 32 == 0 && pitchB % 32 == 0));
  fill<<<dim3(2, height), 256>>>(a, pitchA, width, height);
  showLaunch("fill");
  SHOW(cudaMemcpy2D(host, 400, a, pitchA, width, height, cudaMemcpyDeviceToHost));
  std::printf("device to host %08x\n", digest(host, sizeof host));
  SHOW(cudaMemset2D(b, pitchB, 0xee, width + 300, height));
  SHOW(cudaMemcpy2D(b + 100, pitchB, a + pitchA + 3, pitchA, 200, height - 1, cudaMemcpyDeviceToDevice));
  SHOW(cudaMemcpy2D(host, 400, b + 50, pitchB, 300, height, cudaMemcpyDeviceToHost));
  std::printf("after device to device %08x\n", digest(host, sizeof host));
  for (int i = 0; i < int(sizeof host); ++i) host[i] = i * 11 % 251, pinned[i] = 0;
  SHOW(cudaMemcpy2D(a + 1, pitchA, host + 2, 400, 77, 30, cudaMemcpyHostToDevice));
  SHOW(cudaMemcpy2DAsync(pinned, 350, a, pitchA, width, height, cudaMemcpyDeviceToHost, nullptr));
  SHOW(cudaStreamSynchronize(nullptr));
  std::printf("after host to device %08x\n", digest(pinned, sizeof host));
  SHOW(cudaMemcpy2DAsync(b, pitchB, pinned, 350, 300, 20, cudaMemcpyDefault, nullptr));
  SHOW(cudaMemcpy2D(host, 400, b, pitchB, 400, height, cudaMemcpyDefault));
  std::printf("after default copies %08x\n", digest(host, sizeof host));
  SHOW(cudaMemcpy2D(host + 5, 100, pinned, 90, 80, 10, cudaMemcpyHostToHost));
  std::printf("after host to host %08x\n", digest(host, sizeof host));
  SHOW(cudaFree(a));
  SHOW(cudaFree(b));
  SHOW(cudaFreeHost(pinned));
}
