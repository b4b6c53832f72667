// Half and bfloat16 arithmetic as bits.
// conformance:
// conformance: build=sm_90 flags=-arch=sm_90
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "show.h"

constexpr int kColumns = 18;

__device__ unsigned bits(__half x) { return __hisnan(x) ? 0x7fff : __half_as_ushort(x); }
__device__ unsigned bits(__nv_bfloat16 x) { return __hisnan(x) ? 0x7fff : __bfloat16_as_ushort(x); }

__global__ void halves(const float* in, int n, unsigned* out) {
  const __half a = __float2half(in[blockIdx.x]), b = __float2half(in[threadIdx.x]);
  unsigned* o = out + (blockIdx.x * n + threadIdx.x) * kColumns;
  o[0] = bits(__hadd(a, b)), o[1] = bits(__hsub(a, b)), o[2] = bits(__hmul(a, b)), o[3] = bits(__hfma(a, b, a)), o[4] = bits(__hneg(a)),
  o[5] = bits(__habs(a));
  o[6] = __hlt(a, b) | __heq(a, b) << 1 | __hge(a, b) << 2 | __hltu(a, b) << 3;
  const __half2 pair = __halves2half2(a, b), sum = __hadd2(pair, __low2half2(pair)), product = __hmul2(pair, pair);
  o[7] = bits(__low2half(sum)), o[8] = bits(__high2half(sum)), o[9] = bits(__high2half(product));
  o[10] = unsigned(__half2int_rn(__hmul(a, __float2half(0.5f)))), o[11] = bits(__int2half_rn(int(blockIdx.x * 5000))),
  o[12] = bits(__float2half_rz(in[threadIdx.x] * 1.001f));
  o[13] = __float_as_uint(__half2float(a)), o[14] = bits(hrint(a)), o[15] = bits(hfloor(a)),
  o[16] = bits(__double2half(in[threadIdx.x] / 3.0)), o[17] = bits(__hfma_relu(a, b, a));
}

__global__ void bfloats(const float* in, int n, unsigned* out) {
  const __nv_bfloat16 a = __float2bfloat16(in[blockIdx.x]), b = __float2bfloat16(in[threadIdx.x]);
  unsigned* o = out + (blockIdx.x * n + threadIdx.x) * kColumns;
  o[0] = bits(__hadd(a, b)), o[1] = bits(__hsub(a, b)), o[2] = bits(__hmul(a, b)), o[3] = bits(__hmul(a, a)), o[4] = bits(__hneg(a)),
  o[5] = bits(__habs(a));
  o[6] = __hlt(a, b) | __heq(a, b) << 1, o[7] = __float_as_uint(__bfloat162float(a)),
  o[8] = bits(__float2bfloat16_rz(in[threadIdx.x] * 1.01f));
}

static void show(const char* what, const unsigned* d, int n, int columns) {
  static unsigned out[14 * 14 * kColumns], values[14 * 14];
  std::printf("%s: %s, ", what, resultName(cudaGetLastError()));
  std::printf("%s\n", resultName(cudaMemcpy(out, d, n * n * kColumns * sizeof *out, cudaMemcpyDeviceToHost)));
  for (int column = 0; column < columns; ++column) {
    for (int i = 0; i < n * n; ++i) values[i] = out[i * kColumns + column];
    std::printf("column %d: %08x;", column, digest(values, n * n * sizeof *values));
    for (int i = 2; i < n * n; i += 17) std::printf(" %x", values[i]);
    std::printf("\n");
  }
}

int main() {
  const float in[] = {0, 1, -1, 0.5f, 3.14159f, -2048.5f, 65504, 60000, 6e-5f, 6e-8f, -1e-7f, 1e30f, -70000, 0.333f};
  constexpr int n = sizeof in / sizeof *in;
  float* dIn = nullptr;
  unsigned* dOut = nullptr;
  SHOW(cudaMalloc(&dIn, sizeof in));
  SHOW(cudaMalloc(&dOut, n * n * kColumns * sizeof(unsigned)));
  SHOW(cudaMemcpy(dIn, in, sizeof in, cudaMemcpyHostToDevice));
  SHOW(cudaMemset(dOut, 0, n * n * kColumns * sizeof(unsigned)));
  halves<<<n, n>>>(dIn, n, dOut);
  show("half", dOut, n, kColumns);
  bfloats<<<n, n>>>(dIn, n, dOut);
  show("bfloat16", dOut, n, 9);
}
