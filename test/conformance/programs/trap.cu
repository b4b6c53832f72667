// A kernel that gives up by a trap instruction.
// conformance:
#include "show.h"

__global__ void giveUp(int when) {
  if (threadIdx.x == when) __trap();
}

int main() {
  void* p = nullptr;
  giveUp<<<1, 32>>>(-1);
  showLaunch("no trap");
  giveUp<<<1, 32>>>(3);
  showLaunch("trap");
  SHOW(cudaMalloc(&p, 4));
  SHOW(cudaGetLastError());
}
