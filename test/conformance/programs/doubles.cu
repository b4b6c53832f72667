// Double arithmetic as bits: rounding modes, denormals, conversions. What is not a number is printed as 7fffffffffffffff.
// conformance:
#include <cmath>

#include "show.h"

using Bits = unsigned long long;
constexpr int kColumns = 22, kConversions = 20;

__device__ Bits bits(double x) { return x != x ? 0x7fffffffffffffffull : Bits(__double_as_longlong(x)); }
__device__ Bits bits(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }

__global__ void two(const double* in, int n, Bits* out) {
  const double a = in[blockIdx.x], b = in[threadIdx.x], c = in[(blockIdx.x + threadIdx.x) % n];
  Bits* o = out + (blockIdx.x * n + threadIdx.x) * kColumns;
  o[0] = bits(__dadd_rn(a, b)), o[1] = bits(__dadd_rz(a, b)), o[2] = bits(__dadd_ru(a, b)), o[3] = bits(__dadd_rd(a, b));
  o[4] = bits(__dmul_rn(a, b)), o[5] = bits(__dmul_rz(a, b)), o[6] = bits(__dmul_ru(a, b)), o[7] = bits(__dmul_rd(a, b));
  o[8] = bits(__fma_rn(a, b, c)), o[9] = bits(__fma_rz(a, b, c)), o[10] = bits(__fma_ru(a, b, c)), o[11] = bits(__fma_rd(a, b, c));
  o[12] = bits(__ddiv_rn(a, b)), o[13] = bits(__ddiv_rz(a, b)), o[14] = bits(__ddiv_ru(a, b)), o[15] = bits(__ddiv_rd(a, b));
  o[16] = bits(a - b), o[17] = bits(fmin(a, b) + 0.0), o[18] = bits(fmax(a, b) + 0.0), o[19] = bits(fmod(a, b)),
  o[20] = bits(nextafter(a, b));
  o[21] = (a < b) | (a <= b) << 1 | (a == b) << 2 | (a != b) << 3 | (a > b) << 4 | (a >= b) << 5 | !(a <= b || a > b) << 6;
}

__global__ void one(const double* in, Bits* out) {
  const double a = in[threadIdx.x];
  Bits* o = out + threadIdx.x * kConversions;
  o[0] = unsigned(__double2int_rn(a)), o[1] = unsigned(__double2int_rz(a)), o[2] = unsigned(__double2int_ru(a)), o[3] = __double2uint_rd(a);
  o[4] = __double2ll_rn(a), o[5] = __double2ll_rz(a), o[6] = __double2ull_ru(a), o[7] = bits(__double2float_rn(a)),
  o[8] = bits(__double2float_rz(a));
  o[9] = bits(__double2float_ru(a)), o[10] = bits(__double2float_rd(a)), o[11] = bits(rint(a)), o[12] = bits(trunc(a)),
  o[13] = bits(ceil(a)), o[14] = bits(floor(a));
  o[15] = bits(__dsqrt_rn(a)), o[16] = bits(__dsqrt_rz(a)), o[17] = bits(__drcp_rn(a)), o[18] = bits(__drcp_ru(a)), o[19] = bits(round(a));
}

__global__ void fromIntegers(const long long* in, Bits* out) {
  const long long a = in[threadIdx.x];
  Bits* o = out + threadIdx.x * 5;
  o[0] = bits(__ll2double_rn(a)), o[1] = bits(__ll2double_rz(a)), o[2] = bits(__ull2double_ru(a)), o[3] = bits(__int2double_rn(int(a))),
  o[4] = bits(double(unsigned(a)));
}

int main() {
  const double inf = INFINITY;
  const double in[] = {0.0,          -0.0,         1.0,     -1.0,   2.5,     -3.5,     0.1,    1.0 / 3, 9007199254740993.0,
                       2147483648.5, 4294967295.5, -9.3e18, 1.8e19, 1.7e308, 2.3e-308, 4e-320, -5e-324, 1e-40,
                       3.5e38,       inf,          -inf,    NAN};
  constexpr int n = sizeof in / sizeof *in;
  static Bits out[n * n * kColumns];
  double* dIn = nullptr;
  Bits* dOut = nullptr;
  SHOW(cudaMalloc(&dIn, sizeof in));
  SHOW(cudaMalloc(&dOut, sizeof out));
  SHOW(cudaMemcpy(dIn, in, sizeof in, cudaMemcpyHostToDevice));
  two<<<n, n>>>(dIn, n, dOut);
  SHOW(cudaMemcpy(out, dOut, sizeof out, cudaMemcpyDeviceToHost));
  for (int column = 0; column < kColumns; ++column) {
    static Bits values[n * n];
    for (int i = 0; i < n * n; ++i) values[i] = out[i * kColumns + column];
    std::printf("column %d: %08x;", column, digest(values, sizeof values));
    for (int i = 5; i < n * n; i += 53) std::printf(" %llx", values[i]);
    std::printf("\n");
  }
  one<<<1, n>>>(dIn, dOut);
  SHOW(cudaMemcpy(out, dOut, n * kConversions * sizeof *out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) {
    std::printf("%g:", in[i]);
    for (int column = 0; column < kConversions; ++column) std::printf(" %llx", out[i * kConversions + column]);
    std::printf("\n");
  }
  const long long integers[] = {0, -1, INT64_MAX, INT64_MIN, 9007199254740993, -4503599627370497, 0x1fffffffffffff1, 77};
  SHOW(cudaMemcpy(dIn, integers, sizeof integers, cudaMemcpyHostToDevice));
  fromIntegers<<<1, 8>>>(reinterpret_cast<long long*>(dIn), dOut);
  SHOW(cudaMemcpy(out, dOut, 40 * sizeof *out, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 40; ++i) std::printf(i % 5 == 4 ? "%llx\n" : "%llx ", out[i]);
}
