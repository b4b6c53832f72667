// Constant memory: initial values, updates between launches, uniform and per-thread indices, copies of a part.
// conformance:
#include "show.h"

struct Setting {
  float factor;
  int shift;
  char letter;
};

__constant__ int table[16] = {1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
__constant__ Setting setting = {0.5f, 3, 'q'};

__global__ void look(int* out) {
  out[threadIdx.x] = table[threadIdx.x] * 1000 + int(setting.factor * (table[3] << setting.shift)) + setting.letter;
}

static void run(const char* what, int* d) {
  int out[16];
  look<<<1, 16>>>(d);
  std::printf("%s: %s;", what, resultName(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost)));
  for (int value : out) std::printf(" %d", value);
  std::printf("\n");
}

int main() {
  int* d = nullptr;
  SHOW(cudaMalloc(&d, 64));
  run("as compiled", d);
  const Setting changed = {4, 1, 'A'};
  SHOW(cudaMemcpyToSymbol(setting, &changed, sizeof changed));
  run("setting changed", d);
  const int part[3] = {-1, -2, -3};
  SHOW(cudaMemcpyToSymbol(table, part, sizeof part, 5 * sizeof(int)));
  run("part of the table changed", d);
  int back[4] = {};
  SHOW(cudaMemcpyFromSymbol(back, table, sizeof back, 4 * sizeof(int)));
  std::printf("%d %d %d %d\n", back[0], back[1], back[2], back[3]);
  std::size_t size = 0;
  SHOW(cudaGetSymbolSize(&size, table));
  std::printf("size %zu\n", size);
  SHOW(cudaMemcpyToSymbol(table, part, sizeof part, 62));
  run("after a copy past the end", d);
  SHOW(cudaFree(d));
}
