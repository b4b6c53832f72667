// Integer arithmetic at its edges, as hex.
// conformance:
#include "show.h"

constexpr int kColumns = 24;

__global__ void run32(const unsigned* in, int n, unsigned* out) {
  const int i = blockIdx.x, j = threadIdx.x;
  const unsigned a = in[i], b = in[j];
  const int x = int(a), y = int(b);
  unsigned* o = out + (i * n + j) * kColumns;
  o[0] = a + b, o[1] = a - b, o[2] = a * b, o[3] = b ? a / b : 0, o[4] = b ? a % b : 0;
  const bool defined = y != 0 && !(a == 0x80000000u && y == -1);
  o[5] = defined ? x / y : 0, o[6] = defined ? x % y : 0;
  o[7] = __umulhi(a, b), o[8] = __mulhi(x, y), o[9] = a << (b & 31), o[10] = a >> (b & 31), o[11] = x >> (b & 31);
  o[12] = __funnelshift_l(a, b, j * 5), o[13] = __funnelshift_r(a, b, j * 7), o[14] = __funnelshift_lc(a, b, j * 9);
  o[15] = __byte_perm(a, b, 0x3715 + i), o[16] = __usad(a, b, 1), o[17] = __sad(x, y, 1), o[18] = __hadd(x, y), o[19] = __urhadd(a, b);
  o[20] = __mul24(x, y), o[21] = __umul24(a, b), o[22] = min(x, y) ^ max(a, b), o[23] = __dp4a(x, y, 3);
}

__global__ void runBits(const unsigned* in, unsigned* out) {
  const unsigned a = in[threadIdx.x];
  const unsigned long long wide = (static_cast<unsigned long long>(a) << 32) | (a * 2654435761u);
  unsigned* o = out + threadIdx.x * kColumns;
  o[0] = __clz(a), o[1] = __popc(a), o[2] = __brev(a), o[3] = __ffs(a), o[4] = __clzll(wide), o[5] = __popcll(wide), o[6] = __ffsll(wide);
  o[7] = unsigned(__brevll(wide) >> 32), o[8] = int(static_cast<signed char>(a)), o[9] = int(static_cast<short>(a)),
  o[10] = abs(int(a) / 2);
  o[11] = unsigned(__umul64hi(wide, wide)), o[12] = unsigned(__mul64hi(wide, 3) >> 32), o[13] = unsigned(wide / (a | 1)),
  o[14] = unsigned(wide % (a | 1));
  const long long value = static_cast<long long>(wide);
  o[15] = unsigned(value / 1000003), o[16] = unsigned(value % -1000003), o[17] = unsigned(value >> 17),
  o[18] = unsigned((wide * wide) >> 32);
  o[19] = static_cast<unsigned short>(a * a) / 7, o[20] = static_cast<short>(a) % 10, o[21] = unsigned(min(value, 5LL)),
  o[22] = a > 0x7fffffffu, o[23] = int(a) < 0;
}

int main() {
  const unsigned in[] = {0, 1, 2, 7, 0x7f, 0x80, 0xffff, 0x12345678, 0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff};
  constexpr int n = sizeof in / sizeof *in;
  static unsigned out[n * n * kColumns];
  unsigned *dIn = nullptr, *dOut = nullptr;
  SHOW(cudaMalloc(&dIn, sizeof in));
  SHOW(cudaMalloc(&dOut, sizeof out));
  SHOW(cudaMemcpy(dIn, in, sizeof in, cudaMemcpyHostToDevice));
  run32<<<n, n>>>(dIn, n, dOut);
  SHOW(cudaMemcpy(out, dOut, sizeof out, cudaMemcpyDeviceToHost));
  for (int column = 0; column < kColumns; ++column) {
    unsigned values[n * n];
    for (int i = 0; i < n * n; ++i) values[i] = out[i * kColumns + column];
    std::printf("column %d: %08x;", column, digest(values, sizeof values));
    for (int i = 1; i < n * n; i += 13) std::printf(" %x", values[i]);
    std::printf("\n");
  }
  runBits<<<1, n>>>(dIn, dOut);
  SHOW(cudaMemcpy(out, dOut, n * kColumns * sizeof *out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    std::printf("%08x:", in[i]);
    for (int column = 0; column < kColumns; ++column) std::printf(" %x", out[i * kColumns + column]);
    std::printf("\n");
  }
}
