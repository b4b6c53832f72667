// wmma with 4-bit integers and bits, saturation, f16 sums of f16 products, and fragments that a program changes element by element.
// conformance: flags=-arch=sm_80 judges=itself
#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

#include "expect.h"

using namespace nvcuda;
namespace small = wmma::experimental;

__device__ std::uint32_t words[2][8][4];
__device__ int sums[8][8];

template <class T, int kK>
__global__ void smallTile() {
  wmma::fragment<wmma::matrix_a, 8, 8, kK, T, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 8, 8, kK, T, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 8, 8, kK, int> c;
  wmma::load_matrix_sync(a, words[0], kK);
  wmma::load_matrix_sync(b, words[1], kK);
  wmma::load_matrix_sync(c, &sums[0][0], 8, wmma::mem_row_major);
  if constexpr (kK == 128) {
    wmma::bmma_sync(c, a, b, c, small::bmmaBitOpXOR);
  } else {
    wmma::mma_sync(c, a, b, c);
  }
  wmma::store_matrix_sync(&sums[0][0], c, 8, wmma::mem_row_major);
}

int element(const std::uint32_t* line, int k, int bits, bool isSigned) {
  const int value = line[k * bits / 32] >> (k * bits % 32) & ((1 << bits) - 1);
  return isSigned && value >> (bits - 1) ? value - (1 << bits) : value;
}

template <class T, int kK>
void multiplySmall(int bits, bool isSigned) {
  std::uint32_t host[2][8][4];
  int before[8][8], after[8][8];
  std::uint32_t state = 12345;
  for (auto& matrix : host) {
    for (auto& line : matrix) {
      for (auto& word : line) word = state = state * 1664525 + 1013904223;
    }
  }
  for (int i = 0; i < 64; ++i) before[i / 8][i % 8] = i * 37 - 900;
  // Lines follow each other without a gap: kK elements each.
  std::uint32_t packed[2][32] = {};
  const int inLine = kK * bits / 32;
  for (int m = 0; m < 2; ++m) {
    for (int i = 0; i < 8 * inLine; ++i) packed[m][i] = host[m][i / inLine][i % inLine];
  }
  EXPECT_OK(cudaMemcpyToSymbol(words, packed, sizeof packed));
  EXPECT_OK(cudaMemcpyToSymbol(sums, before, sizeof before));
  smallTile<T, kK><<<1, 32>>>();
  EXPECT_OK(cudaMemcpyFromSymbol(after, sums, sizeof after));
  bool right = true;
  for (int row = 0; row < 8; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = before[row][column];
      for (int k = 0; k < kK; ++k) {
        const int x = element(host[0][row], k, bits, isSigned), y = element(host[1][column], k, bits, isSigned);
        sum += bits == 1 ? x ^ y : x * y;
      }
      right = right && sum == after[row][column];
    }
  }
  EXPECT(right);
}

__device__ signed char bytes[2][256];
__device__ int limits[256];

__global__ void saturating() {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, int> c;
  wmma::load_matrix_sync(a, bytes[0], 16);
  wmma::load_matrix_sync(b, bytes[1], 16);
  wmma::load_matrix_sync(c, limits, 16, wmma::mem_row_major);
  wmma::mma_sync(c, a, b, c, true);
  wmma::store_matrix_sync(limits, c, 16, wmma::mem_row_major);
}

void saturate() {
  signed char host[2][256];
  int before[256], after[256];
  for (int i = 0; i < 256; ++i) {
    host[0][i] = 100;
    host[1][i] = i / 16 % 2 ? 100 : -100;  // columns of b: every other sum falls
    before[i] = i % 16 % 2 ? 2147483647 - i * 1000 : -2147483647 + i * 1000;
  }
  EXPECT_OK(cudaMemcpyToSymbol(bytes, host, sizeof host));
  EXPECT_OK(cudaMemcpyToSymbol(limits, before, sizeof before));
  saturating<<<1, 32>>>();
  EXPECT_OK(cudaMemcpyFromSymbol(after, limits, sizeof after));
  bool right = true;
  for (int i = 0; i < 256; ++i) {
    long long sum = before[i] + (i % 16 % 2 ? 160000ll : -160000ll);
    if (sum > 2147483647) sum = 2147483647;
    if (sum < -2147483648ll) sum = -2147483648ll;
    right = right && after[i] == sum;
  }
  EXPECT(right);
}

__device__ __half halves[3][256];

/// d = 2 * (a * b) + 1, by the elements of the fragment.
__global__ void scaled() {
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::col_major> a;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> b;
  wmma::fragment<wmma::accumulator, 16, 16, 16, __half> c;
  wmma::load_matrix_sync(a, halves[0], 16);
  wmma::load_matrix_sync(b, halves[1], 16);
  wmma::fill_fragment(c, __float2half(0.0f));
  for (int i = 0; i < a.num_elements; ++i) a.x[i] = __hadd(a.x[i], a.x[i]);
  wmma::mma_sync(c, a, b, c);
  for (int i = 0; i < c.num_elements; ++i) c.x[i] = __hadd(c.x[i], __float2half(1.0f));
  wmma::store_matrix_sync(halves[2], c, 16, wmma::mem_col_major);
}

void scale() {
  __half host[3][256];
  for (int i = 0; i < 256; ++i) {
    host[0][i] = __float2half(float(i % 7) - 3);
    host[1][i] = __float2half(float(i % 5) - 2);
  }
  EXPECT_OK(cudaMemcpyToSymbol(halves, host, sizeof host));
  scaled<<<1, 32>>>();
  EXPECT_OK(cudaMemcpyFromSymbol(host, halves, sizeof host));
  bool right = true;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 16; ++column) {
      float sum = 1;
      for (int k = 0; k < 16; ++k)
        sum += 2 * __half2float(host[0][k * 16 + row]) * __half2float(host[1][k * 16 + column]);
      right = right && __half2float(host[2][column * 16 + row]) == sum;
    }
  }
  EXPECT(right);
}

int main() {
  multiplySmall<small::precision::s4, 32>(4, true);
  multiplySmall<small::precision::u4, 32>(4, false);
  multiplySmall<small::precision::b1, 128>(1, false);
  saturate();
  scale();
  return verdict();
}
