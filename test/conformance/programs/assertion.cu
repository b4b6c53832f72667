// A failed assertion: its text on stderr, an error that stays.
// conformance:
#include <cassert>

#include "show.h"

__global__ void check(int limit) { assert(int(threadIdx.x) < limit && "too many threads"); }

int main() {
  void* p = nullptr;
  check<<<1, 32>>>(32);
  showLaunch("it holds");
  check<<<1, 32>>>(31);
  showLaunch("it fails");
  SHOW(cudaMalloc(&p, 4));
  SHOW(cudaGetLastError());
}
