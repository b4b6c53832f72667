// More memory than there is, in every way to ask for it, and how the program goes on. What "there is" is the quota where one is set.
// conformance: alone=yes
// conformance: build=quota memory=96MiB alone=yes
#include <vector>

#include "show.h"

__global__ void mark(unsigned char* x, std::size_t last) { x[0] = x[last] = 9; }

int main() {
  std::size_t available = 0, total = 0, before = 0, pitch = 0;
  void* p = nullptr;
  SHOW(cudaMalloc(&p, 4 << 20));
  mark<<<1, 1>>>(static_cast<unsigned char*>(p), 5);
  showLaunch("a first kernel, so that its image is loaded");
  SHOW(cudaFree(p));
  SHOW(cudaMemGetInfo(&available, &total));
  std::printf("some is available: %s, no more than there is: %s\n", yesNo(available > 0), yesNo(available <= total));
  SHOW(cudaMalloc(&p, total + 1));
  SHOW(cudaGetLastError());
  SHOW(cudaMalloc(&p, std::size_t{1} << 50));
  SHOW(cudaMallocPitch(&p, &pitch, total / 1000, 1001));
  SHOW(cudaMallocAsync(&p, total + 1, nullptr));
  SHOW(cudaGetLastError());
  SHOW(cudaGetLastError());
  SHOW(cudaMemGetInfo(&before, &total));
  std::printf("nothing was lost: %s\n", yesNo(before == available));
  const std::size_t piece = available / 4 / (2 << 20) * (2 << 20);
  std::vector<unsigned char*> pieces;
  cudaError_t error = cudaSuccess;
  while (pieces.size() < 8 && (error = cudaMalloc(&p, piece)) == cudaSuccess) pieces.push_back(static_cast<unsigned char*>(p));
  std::printf("quarters: three or four: %s, then %s\n", yesNo(pieces.size() == 3 || pieces.size() == 4), resultName(error));
  SHOW(cudaGetLastError());
  mark<<<1, 1>>>(pieces[1], piece - 1);
  showLaunch("the second quarter");
  for (unsigned char* one : pieces) cudaFree(one);
  SHOW(cudaMemGetInfo(&available, &total));
  std::printf("all is back: %s\n", yesNo(available == before));
  SHOW(cudaMalloc(&p, 2 * piece));
  SHOW(cudaMemset(static_cast<char*>(p) + 2 * piece - 4096, 1, 4096));
  SHOW(cudaFree(p));
}
