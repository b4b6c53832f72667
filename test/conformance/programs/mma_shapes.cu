// mma.sync fed by ldmatrix from shared memory, as matrix libraries do it: f16, bf16, tf32, bytes, doubles; stmatrix writes the result.
// conformance: flags=-arch=sm_90 judges=itself
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "expect.h"

__device__ std::uint32_t shared32(const void* p) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(p)); }

struct Matrices {
  float a[16][16], b[16][8], c[16][8];
};
__device__ Matrices given;
__device__ float got[16][8];

__device__ void write(const float (&d)[4]) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) got[row + i / 2 * 8][column + i % 2] = d[i];
}
__device__ void read(float (&c)[4]) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  for (int i = 0; i < 4; ++i) c[i] = given.c[row + i / 2 * 8][column + i % 2];
}

/// 16 x 8 x 16 of f16 or bf16: a by ldmatrix.x4, b, which lies by rows, by ldmatrix.x2.trans.
template <class T>
__global__ void halves() {
  __shared__ alignas(16) T a[16][16], b[16][8];
  for (int i = threadIdx.x; i < 256; i += 32) a[i / 16][i % 16] = T(given.a[i / 16][i % 16]);
  for (int i = threadIdx.x; i < 128; i += 32) b[i / 8][i % 8] = T(given.b[i / 8][i % 8]);
  __syncwarp();
  const unsigned lane = threadIdx.x;
  unsigned ra[4], rb[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(ra[0]), "=r"(ra[1]), "=r"(ra[2]), "=r"(ra[3])
               : "r"(shared32(&a[lane % 16][lane / 16 * 8])));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(rb[0]), "=r"(rb[1])
               : "r"(shared32(&b[lane % 16][0])));
  float d[4];
  read(d);
  if constexpr (sizeof(T) == 2 && std::is_same<T, __half>::value) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  } else {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]));
  }
  write(d);
}

__global__ void tensorFloats() {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4;
  float d[4];
  read(d);
  for (int k = 0; k < 16; k += 8) {
    unsigned a[4], b[2];
    for (int i = 0; i < 4; ++i) a[i] = __float_as_uint(given.a[row + i % 2 * 8][k + column + i / 2 * 4]);
    for (int i = 0; i < 2; ++i) b[i] = __float_as_uint(given.b[k + column + i * 4][row]);
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  }
  write(d);
}

__global__ void bytes() {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 4;
  float c[4];
  read(c);
  int d[4];
  for (int i = 0; i < 4; ++i) d[i] = int(c[i]);
  unsigned a[2] = {}, b = 0;
  for (int i = 0; i < 4; ++i) {
    a[0] |= (int(given.a[row][column + i]) & 255u) << 8 * i;
    a[1] |= (int(given.a[row + 8][column + i]) & 255u) << 8 * i;
    b |= (int(given.b[column + i][row]) & 255u) << 8 * i;
  }
  asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
               : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(b));
  for (int i = 0; i < 4; ++i) c[i] = float(d[i]);
  write(c);
}

__global__ void doubles() {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4;
  float c[4];
  read(c);
  double d[4] = {c[0], c[1], c[2], c[3]};
  for (int k = 0; k < 16; k += 4) {
    for (int half = 0; half < 2; ++half) {
      asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                   : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
                   : "d"(double(given.a[row + 8 * half][k + column])), "d"(double(given.b[k + column][row])));
    }
  }
  for (int i = 0; i < 4; ++i) c[i] = float(d[i]);
  write(c);
}

/// The sums in f16, written by stmatrix.
__global__ void stored() {
  __shared__ alignas(16) __half out[16][8];
  const int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  unsigned a[4], b[2], d[2];
  const auto pair = [](float low, float high) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned*>(&both);
  };
  for (int i = 0; i < 4; ++i)
    a[i] = pair(given.a[row + i % 2 * 8][column + i / 2 * 8], given.a[row + i % 2 * 8][column + i / 2 * 8 + 1]);
  for (int i = 0; i < 2; ++i) b[i] = pair(given.b[column + i * 8][row], given.b[column + i * 8 + 1][row]);
  for (int i = 0; i < 2; ++i) d[i] = pair(given.c[row + i * 8][column], given.c[row + i * 8][column + 1]);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::"r"(shared32(&out[threadIdx.x % 16][0])), "r"(d[0]), "r"(d[1]) : "memory");
  __syncwarp();
  for (int i = threadIdx.x; i < 128; i += 32) got[i / 8][i % 8] = __half2float(out[i / 8][i % 8]);
}

void check(void (*kernel)(), const char* name) {
  Matrices host;
  for (int i = 0; i < 256; ++i) host.a[i / 16][i % 16] = float((i * 7 + i / 16) % 9 - 4);
  for (int i = 0; i < 128; ++i) {
    host.b[i / 8][i % 8] = float((i * 5 + i / 8) % 7 - 3);
    host.c[i / 8][i % 8] = float(i % 11 - 5);
  }
  EXPECT_OK(cudaMemcpyToSymbol(given, &host, sizeof host));
  kernel<<<1, 32>>>();
  float result[16][8];
  EXPECT_OK(cudaMemcpyFromSymbol(result, got, sizeof result));
  bool right = true;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float sum = host.c[row][column];
      for (int k = 0; k < 16; ++k) sum += host.a[row][k] * host.b[k][column];
      right = right && result[row][column] == sum;
    }
  }
  if (!right) std::printf("%s\n", name);
  EXPECT(right);
}

int main() {
  check(halves<__half>, "f16");
  check(halves<__nv_bfloat16>, "bf16");
  check(tensorFloats, "tf32");
  check(bytes, "s8");
  check(doubles, "f64");
  check(stored, "f16 sums");
  return verdict();
}
