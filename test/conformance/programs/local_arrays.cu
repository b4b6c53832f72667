// Arrays of a thread's own, indexed at run time: each thread sorts and searches its array.
// conformance:
#include "show.h"

__global__ void sortOwn(unsigned* out, int n) {
  unsigned list[64];
  struct {
    short key;
    char text[6];
  } records[5];
  unsigned state = threadIdx.x * 7919 + 1;
  for (int i = 0; i < n; ++i) list[i] = (state = state * 1664525 + 1013904223) >> 20;
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && list[j - 1] > list[j]; --j) {
      const unsigned swap = list[j];
      list[j] = list[j - 1];
      list[j - 1] = swap;
    }
  for (int i = 0; i < 5; ++i) {
    records[i].key = list[i * n / 5];
    for (int j = 0; j < 6; ++j) records[i].text[j] = 'a' + (i * j + threadIdx.x) % 26;
  }
  const auto& chosen = records[list[n / 2] % 5];
  unsigned hash = chosen.key;
  for (char c : chosen.text) hash = hash * 31 + c;
  out[threadIdx.x * 4] = list[0], out[threadIdx.x * 4 + 1] = list[n / 2], out[threadIdx.x * 4 + 2] = list[n - 1],
                    out[threadIdx.x * 4 + 3] = hash;
}

int main() {
  unsigned *d = nullptr, out[40 * 4];
  SHOW(cudaMalloc(&d, sizeof out));
  sortOwn<<<1, 40>>>(d, 64);
  showLaunch("sort");
  SHOW(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 40; i += 3) std::printf("%d: %u %u %u %08x\n", i, out[i * 4], out[i * 4 + 1], out[i * 4 + 2], out[i * 4 + 3]);
}
