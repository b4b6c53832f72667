// Matrix products of a warp by wmma in every type and shape, from global memory and from 64 KiB of dynamic shared memory.
// conformance: flags=-arch=sm_80 judges=itself
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <vector>

#include "expect.h"

using namespace nvcuda;

template <class T>
struct Stored {
  using Type = T;
};
template <>
struct Stored<wmma::precision::tf32> {
  using Type = float;
};

/// c = a * b + c for one tile; the fragments also pass through shared memory.
template <class T, class Sum, int kM, int kN, int kK, class LayoutA, class LayoutB>
__global__ void tile(const typename Stored<T>::Type* a, const typename Stored<T>::Type* b, Sum* c) {
  using Element = typename Stored<T>::Type;
  extern __shared__ char memory[];
  Element* sharedA = reinterpret_cast<Element*>(memory);
  Sum* sharedC = reinterpret_cast<Sum*>(memory + (48 << 10));
  for (int i = threadIdx.x; i < kM * kK; i += 32) sharedA[i] = a[i];
  __syncwarp();
  wmma::fragment<wmma::matrix_a, kM, kN, kK, T, LayoutA> fragmentA;
  wmma::fragment<wmma::matrix_b, kM, kN, kK, T, LayoutB> fragmentB;
  wmma::fragment<wmma::accumulator, kM, kN, kK, Sum> sums, twice;
  wmma::load_matrix_sync(fragmentA, sharedA, std::is_same<LayoutA, wmma::row_major>::value ? kK : kM);
  wmma::load_matrix_sync(fragmentB, b, std::is_same<LayoutB, wmma::row_major>::value ? kN : kK);
  wmma::load_matrix_sync(sums, c, kN, wmma::mem_row_major);
  wmma::mma_sync(sums, fragmentA, fragmentB, sums);
  wmma::fill_fragment(twice, Sum(0));
  for (int i = 0; i < sums.num_elements; ++i) twice.x[i] = sums.x[i] + sums.x[i];
  wmma::store_matrix_sync(sharedC, twice, kM, wmma::mem_col_major);
  __syncwarp();
  for (int i = threadIdx.x; i < kM * kN; i += 32) c[i] = sharedC[i % kN * kM + i / kN];
}

template <class T, class Sum, int kM, int kN, int kK, class LayoutA, class LayoutB>
void multiply(const char* name) {
  using Element = typename Stored<T>::Type;
  constexpr bool rowsA = std::is_same<LayoutA, wmma::row_major>::value, rowsB = std::is_same<LayoutB, wmma::row_major>::value;
  std::vector<Element> a(kM * kK), b(kK * kN);
  std::vector<Sum> c(kM * kN), expected(kM * kN);
  // Small whole numbers: every order of additions gives the same sum, in half precision too.
  for (int i = 0; i < kM * kK; ++i) a[i] = Element(float((i * 7 + i / 5) % 5));
  for (int i = 0; i < kK * kN; ++i) b[i] = Element(float((i * 3 + i / 7) % 4));
  for (int i = 0; i < kM * kN; ++i) c[i] = Sum(float(i % 9));
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      float sum = float(c[row * kN + column]);
      for (int k = 0; k < kK; ++k) {
        sum += float(a[rowsA ? row * kK + k : k * kM + row]) * float(b[rowsB ? k * kN + column : column * kK + k]);
      }
      expected[row * kN + column] = Sum(2 * sum);
    }
  }
  Element *dA = nullptr, *dB = nullptr;
  Sum* dC = nullptr;
  EXPECT_OK(cudaMalloc(&dA, a.size() * sizeof(Element)));
  EXPECT_OK(cudaMalloc(&dB, b.size() * sizeof(Element)));
  EXPECT_OK(cudaMalloc(&dC, c.size() * sizeof(Sum)));
  EXPECT_OK(cudaMemcpy(dA, a.data(), a.size() * sizeof(Element), cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(dB, b.data(), b.size() * sizeof(Element), cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(dC, c.data(), c.size() * sizeof(Sum), cudaMemcpyHostToDevice));
  const auto kernel = tile<T, Sum, kM, kN, kK, LayoutA, LayoutB>;
  EXPECT_OK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10));
  kernel<<<1, 32, 64 << 10>>>(dA, dB, dC);
  EXPECT_OK(cudaGetLastError());
  EXPECT_OK(cudaMemcpy(c.data(), dC, c.size() * sizeof(Sum), cudaMemcpyDeviceToHost));
  bool right = true;
  for (int i = 0; i < kM * kN; ++i) right = right && float(c[i]) == float(expected[i]);
  if (!right) std::printf("%s\n", name);
  EXPECT(right);
  cudaFree(dA), cudaFree(dB), cudaFree(dC);
}

template <class T, class Sum, int kM, int kN, int kK>
void everyLayout(const char* name) {
  multiply<T, Sum, kM, kN, kK, wmma::row_major, wmma::col_major>(name);
  multiply<T, Sum, kM, kN, kK, wmma::row_major, wmma::row_major>(name);
  multiply<T, Sum, kM, kN, kK, wmma::col_major, wmma::row_major>(name);
  multiply<T, Sum, kM, kN, kK, wmma::col_major, wmma::col_major>(name);
}

template <class T, class Sum>
void everyShape(const char* name) {
  everyLayout<T, Sum, 16, 16, 16>(name);
  multiply<T, Sum, 32, 8, 16, wmma::row_major, wmma::col_major>(name);
  multiply<T, Sum, 8, 32, 16, wmma::col_major, wmma::row_major>(name);
}

int main() {
  everyShape<__half, float>("half into float");
  everyShape<__half, __half>("half into half");
  everyShape<__nv_bfloat16, float>("bfloat16");
  everyShape<unsigned char, int>("unsigned bytes");
  everyShape<signed char, int>("signed bytes");
  everyLayout<wmma::precision::tf32, float, 16, 16, 8>("tf32");
  everyLayout<double, double, 8, 8, 4>("doubles");
  return verdict();
}
