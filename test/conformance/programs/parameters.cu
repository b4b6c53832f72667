// Kernel parameters: 4 KiB in one structure, nearly 32 KiB, many small ones of odd sizes.
// conformance:
#include "show.h"

template <int N>
struct Big {
  int values[N];
};

template <int N>
__global__ void sum(Big<N> big, int* out, char tail) {
  int total = tail;
  for (int i = threadIdx.x; i < N; i += blockDim.x) total += big.values[i] * (i % 7 + 1);
  atomicAdd(out, total);
}

struct Odd {
  char a;
  double b;
  short c;
  char d[3];
};
struct Three {
  char c[3];
};

__global__ void odd(char a, short b, char c, double d, Three e, int f, Odd g, char h, long long i, float j, int* out) {
  const int values[] = {a,   b,      c,      int(d * 8), e.c[0],       e.c[1], e.c[2], f, g.a, int(g.b * 4),
                        g.c, g.d[0], g.d[2], h,          int(i >> 32), int(i), int(j)};
  for (int k = 0; k < int(sizeof values / sizeof *values); ++k) out[k] = values[k];
}

template <int N>
static void show(int* d) {
  Big<N> big;
  int out = 0, expected = 0;
  for (int i = 0; i < N; ++i) big.values[i] = i * i % 1000 - 500, expected += big.values[i] * (i % 7 + 1);
  cudaMemset(d, 0, sizeof out);
  sum<N><<<1, 64>>>(big, d, 3);
  std::printf("%d bytes: launch %s, copy ", int(sizeof big), resultName(cudaGetLastError()));
  std::printf("%s, ", resultName(cudaMemcpy(&out, d, sizeof out, cudaMemcpyDeviceToHost)));
  std::printf("sum %d, expected %d\n", out, expected + 64 * 3);
}

int main() {
  int *d = nullptr, out[17] = {};
  SHOW(cudaMalloc(&d, sizeof out));
  show<1>(d);
  show<1000>(d);
  show<1021>(d);
  show<8000>(d);
  odd<<<1, 1>>>(-1, 2, 3, 4.5, Three{{5, 6, 7}}, 8, Odd{9, 10.25, 11, {12, 13, 14}}, 15, (16LL << 32) + 17, 18.75f, d);
  SHOW(cudaMemcpy(out, d, sizeof out, cudaMemcpyDeviceToHost));
  for (int value : out) std::printf("%d ", value);
  std::printf("\n");
}
