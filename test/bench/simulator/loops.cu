// Kernels whose cost on the simulated GPU loops.py measures. Compiled to PTX only.
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_scan.cuh>

constexpr int kTile = 16;

/// Multiply-adds in four chains, without memory.
extern "C" __global__ void arithmetic(float* out, const float* in, int turns) {
  float a = in[threadIdx.x], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 8
  for (int turn = 0; turn < turns; ++turn) {
    a = a * 0.9999f + 0.1f;
    b = b * 0.9999f + 0.1f;
    c = c * 0.9999f + 0.1f;
    d = d * 0.9999f + 0.1f;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

/// out = in * in, of square matrices, by tiles in shared memory.
extern "C" __global__ void product(float* out, const float* in, int size) {
  __shared__ float left[kTile][kTile], right[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int tile = 0; tile < size; tile += kTile) {
    left[threadIdx.y][threadIdx.x] = in[row * size + tile + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = in[(tile + threadIdx.y) * size + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
    __syncthreads();
  }
  out[row * size + column] = sum;
}

/// Sorts each 1,024 numbers.
extern "C" __global__ void sort(unsigned* out, const unsigned* in, int) {
  using Sort = cub::BlockRadixSort<unsigned, 256, 4>;
  __shared__ typename Sort::TempStorage storage;
  unsigned keys[4];
  const int first = (blockIdx.x * 256 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i) keys[i] = in[first + i];
  Sort(storage).Sort(keys);
  for (int i = 0; i < 4; ++i) out[first + i] = keys[i];
}

/// Inclusive sums of each 1,024 numbers.
extern "C" __global__ void scan(unsigned* out, const unsigned* in, int) {
  using Scan = cub::BlockScan<unsigned, 256>;
  __shared__ typename Scan::TempStorage storage;
  unsigned values[4];
  const int first = (blockIdx.x * 256 + threadIdx.x) * 4;
  for (int i = 0; i < 4; ++i) values[i] = in[first + i];
  Scan(storage).InclusiveSum(values, values);
  for (int i = 0; i < 4; ++i) out[first + i] = values[i];
}

/// The mean of five points of a square, without its edges.
extern "C" __global__ void stencil(float* out, const float* in, int size) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x == 0 || y == 0 || x >= size - 1 || y >= size - 1) return;
  const int i = y * size + x;
  out[i] = (in[i] + in[i - 1] + in[i + 1] + in[i - size] + in[i + size]) * 0.2f;
}
