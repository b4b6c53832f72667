// Vector loads and stores of every width, and what they are made of.
// conformance:
#include "show.h"

template <typename V>
__global__ void twist(const V* in, V* out, int n) {
  const int i = threadIdx.x;
  V a = in[i], b = in[n - 1 - i];
  a.x += b.y, a.y -= b.x;
  out[i] = a;
}

template <typename V>
static void show(const char* what) {
  constexpr int n = 20;
  V host[n] = {}, *in = nullptr, *out = nullptr;
  auto* bytes = reinterpret_cast<unsigned char*>(host);
  for (std::size_t i = 0; i < sizeof host; ++i) bytes[i] = i * 5 % 60;
  cudaMalloc(&in, sizeof host);
  cudaMalloc(&out, sizeof host);
  cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
  twist<<<1, n>>>(in, out, n);
  std::printf("%s: %s", what, resultName(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost)));
  std::printf(" %08x\n", digest(host, sizeof host));
  cudaFree(in);
  cudaFree(out);
}

int main() {
  show<char2>("char2"), show<char3>("char3"), show<char4>("char4"), show<uchar4>("uchar4");
  show<short2>("short2"), show<ushort4>("ushort4"), show<int2>("int2"), show<int3>("int3"), show<uint4>("uint4");
  show<longlong2>("longlong2"), show<float2>("float2"), show<float3>("float3"), show<float4>("float4"), show<double2>("double2");
}
