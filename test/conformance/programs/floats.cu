// Float arithmetic as bits: denormals, infinities, signed zeros, rounding modes, conversions. What is not a number is printed as 7fffffff.
// conformance:
#include <cmath>

#include "show.h"

constexpr int kColumns = 26, kConversions = 20;

__device__ unsigned bits(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }

__global__ void two(const float* in, int n, unsigned* out) {
  const float a = in[blockIdx.x], b = in[threadIdx.x], c = in[(blockIdx.x + threadIdx.x) % n];
  unsigned* o = out + (blockIdx.x * n + threadIdx.x) * kColumns;
  o[0] = bits(__fadd_rn(a, b)), o[1] = bits(__fadd_rz(a, b)), o[2] = bits(__fadd_ru(a, b)), o[3] = bits(__fadd_rd(a, b));
  o[4] = bits(__fmul_rn(a, b)), o[5] = bits(__fmul_rz(a, b)), o[6] = bits(__fmul_ru(a, b)), o[7] = bits(__fmul_rd(a, b));
  o[8] = bits(__fmaf_rn(a, b, c)), o[9] = bits(__fmaf_rz(a, b, c)), o[10] = bits(__fmaf_ru(a, b, c)), o[11] = bits(__fmaf_rd(a, b, c));
  o[12] = bits(__fdiv_rn(a, b)), o[13] = bits(__fdiv_rz(a, b)), o[14] = bits(__fdiv_ru(a, b)), o[15] = bits(__fdiv_rd(a, b));
  o[16] = bits(a - b), o[17] = bits(fminf(a, b) + 0.0f), o[18] = bits(fmaxf(a, b) + 0.0f), o[19] = bits(fmodf(a, b)),
  o[20] = bits(copysignf(a, b));
  o[21] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5 | !(a <= b || a > b) << 6;
  o[22] = bits(nextafterf(a, b)), o[23] = bits(fdimf(a, b)), o[24] = bits(__saturatef(a * b)), o[25] = bits(a / b);
}

__global__ void one(const float* in, unsigned* out) {
  const float a = in[threadIdx.x];
  unsigned* o = out + threadIdx.x * kConversions;
  o[0] = __float2int_rn(a), o[1] = __float2int_rz(a), o[2] = __float2int_ru(a), o[3] = __float2int_rd(a), o[4] = __float2uint_rn(a),
  o[5] = __float2uint_rz(a);
  o[6] = unsigned(__float2ll_rn(a) >> 32), o[7] = unsigned(__float2ull_rz(a) >> 32), o[8] = bits(rintf(a)), o[9] = bits(truncf(a)),
  o[10] = bits(ceilf(a));
  o[11] = bits(floorf(a)), o[12] = bits(roundf(a)), o[13] = bits(__fsqrt_rn(a)), o[14] = bits(__fsqrt_ru(a)), o[15] = bits(__fsqrt_rd(a));
  o[16] = bits(__frcp_rn(a)), o[17] = bits(__frcp_rz(a)), o[18] = isnan(a) | isinf(a) << 1 | signbit(a) << 2 | isfinite(a) << 3;
  int exponent = 0;
  o[19] = a == a && !isinf(a) ? bits(frexpf(a, &exponent)) + exponent : 0;
}

__global__ void fromIntegers(const unsigned* in, unsigned* out) {
  const unsigned a = in[threadIdx.x];
  const long long wide = (static_cast<long long>(int(a)) << 31) + a;
  unsigned* o = out + threadIdx.x * 8;
  o[0] = bits(__int2float_rn(a)), o[1] = bits(__int2float_rz(a)), o[2] = bits(__int2float_ru(a)), o[3] = bits(__uint2float_rn(a));
  o[4] = bits(__uint2float_rd(a)), o[5] = bits(__ll2float_rn(wide)), o[6] = bits(__ull2float_ru(wide)), o[7] = bits(float(short(a)));
}

int main() {
  const float inf = INFINITY;
  const float in[] = {0.0f,     -0.0f,   1.0f,     -1.0f,  1.5f,    -2.5f, 3.0f, 0.1f, 16777217.0f,    2147483648.0f, 4294967296.0f,
                      -9.3e18f, 3.4e38f, 1.2e-38f, 1e-40f, -1e-45f, inf,   -inf, NAN,  0x1.fffffep-1f, 0x1.000002p0f};
  constexpr int n = sizeof in / sizeof *in;
  static unsigned out[n * n * kColumns];
  float* dIn = nullptr;
  unsigned* dOut = nullptr;
  SHOW(cudaMalloc(&dIn, sizeof in));
  SHOW(cudaMalloc(&dOut, sizeof out));
  SHOW(cudaMemcpy(dIn, in, sizeof in, cudaMemcpyHostToDevice));
  two<<<n, n>>>(dIn, n, dOut);
  SHOW(cudaMemcpy(out, dOut, sizeof out, cudaMemcpyDeviceToHost));
  for (int column = 0; column < kColumns; ++column) {
    unsigned values[n * n];
    for (int i = 0; i < n * n; ++i) values[i] = out[i * kColumns + column];
    std::printf("column %d: %08x;", column, digest(values, sizeof values));
    for (int i = 3; i < n * n; i += 31) std::printf(" %x", values[i]);
    std::printf("\n");
  }
  one<<<1, n>>>(dIn, dOut);
  SHOW(cudaMemcpy(out, dOut, n * kConversions * sizeof *out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    std::printf("%g:", in[i]);
    for (int column = 0; column < kConversions; ++column) std::printf(" %x", out[i * kConversions + column]);
    std::printf("\n");
  }
  const unsigned integers[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 16777217, 0xff00ff01, 33554435};
  SHOW(cudaMemcpy(dIn, integers, sizeof integers, cudaMemcpyHostToDevice));
  fromIntegers<<<1, 8>>>(reinterpret_cast<unsigned*>(dIn), dOut);
  SHOW(cudaMemcpy(out, dOut, 64 * sizeof *out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 64; ++i) std::printf(i % 8 == 7 ? "%x\n" : "%x ", out[i]);
}
