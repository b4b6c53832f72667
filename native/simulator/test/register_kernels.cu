// Kernels as textbooks have them, with few and many registers, bounded and not: registers_test.cpp
// compares the simulated GPU's estimate with what NVIDIA's assembler allocates.
#include <cstdio>

constexpr int kTile = 32;

template <class T>
__global__ void tiledProduct(T* c, const T* a, const T* b, int n) {
  __shared__ T left[kTile][kTile], right[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y, row = blockIdx.y * kTile + y,
            column = blockIdx.x * kTile + x;
  T sum = 0;
  for (int tile = 0; tile < n; tile += kTile) {
    left[y][x] = a[row * n + tile + x];
    right[y][x] = b[(tile + y) * n + column];
    __syncthreads();
    for (int k = 0; k < kTile; ++k) sum += left[y][k] * right[k][x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}
template __global__ void tiledProduct(float*, const float*, const float*, int);
template __global__ void tiledProduct(double*, const double*, const double*, int);
template __global__ void tiledProduct(int*, const int*, const int*, int);

__global__ void plainProduct(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.y * blockDim.y + threadIdx.y,
            column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

/// Each thread has 8 x 8 elements of the product in registers.
__global__ void product64(float* c, const float* a, const float* b, int n) {
  __shared__ float left[8][128], right[8][128];
  const int x = threadIdx.x % 16 * 8, y = threadIdx.x / 16 * 8;
  float sum[8][8] = {};
  for (int tile = 0; tile < n; tile += 8) {
    for (int i = threadIdx.x; i < 1024; i += 256) {
      left[i % 8][i / 8] = a[(blockIdx.y * 128 + i / 8) * n + tile + i % 8];
      right[i / 128][i % 128] = b[(tile + i / 128) * n + blockIdx.x * 128 + i % 128];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 8; ++k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum[i][j] += left[k][y + i] * right[k][x + j];
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j)
      c[(blockIdx.y * 128 + y + i) * n + blockIdx.x * 128 + x + j] = sum[i][j];
  }
}

/// Up and down a tree of sums.
__global__ void treeScan(float* out, const float* in, int n) {
  extern __shared__ float sums[];
  const int t = threadIdx.x;
  for (int i = t; i < n; i += blockDim.x) sums[i] = in[i];
  int stride = 1;
  for (; stride < n; stride *= 2) {
    __syncthreads();
    const int at = (t + 1) * stride * 2 - 1;
    if (at < n) sums[at] += sums[at - stride];
  }
  if (t == 0) sums[n - 1] = 0;
  for (stride /= 2; stride > 0; stride /= 2) {
    __syncthreads();
    const int at = (t + 1) * stride * 2 - 1;
    if (at >= n) continue;
    const float before = sums[at - stride];
    sums[at - stride] = sums[at];
    sums[at] += before;
  }
  __syncthreads();
  for (int i = t; i < n; i += blockDim.x) out[i] = sums[i];
}

__global__ void stepScan(int* out, const int* in) {
  __shared__ int sums[2][1024];
  const int t = threadIdx.x;
  int now = 0;
  sums[0][t] = in[t];
#pragma unroll
  for (int stride = 1; stride < 1024; stride *= 2) {
    __syncthreads();
    sums[1 - now][t] = sums[now][t] + (t >= stride ? sums[now][t - stride] : 0);
    now = 1 - now;
  }
  out[t] = sums[now][t];
}

template <unsigned kThreads>
__global__ void blockSum(const int* in, int* out, unsigned n) {
  __shared__ int sums[kThreads];
  int sum = 0;
  for (unsigned i = blockIdx.x * kThreads + threadIdx.x; i < n; i += kThreads * gridDim.x)
    sum += in[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
#pragma unroll
  for (unsigned half = kThreads / 2; half >= 32; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] = sum = sum + sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x >= 32) return;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(~0u, sum, offset);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}
template __global__ void blockSum<1024>(const int*, int*, unsigned);
template __global__ void blockSum<256>(const int*, int*, unsigned);

__global__ void transpose(float* out, const float* in, int n) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * kTile, row = blockIdx.y * kTile;
  for (int i = y; i < kTile; i += 8) tile[i][x] = in[(row + i) * n + column + x];
  __syncthreads();
  for (int i = y; i < kTile; i += 8) out[(column + i) * n + row + x] = tile[x][i];
}

__global__ void gravity(float4* forces, const float4* bodies, int n) {
  extern __shared__ float4 others[];
  const float4 own = bodies[blockIdx.x * blockDim.x + threadIdx.x];
  float x = 0, y = 0, z = 0;
  for (int from = 0; from < n; from += blockDim.x) {
    others[threadIdx.x] = bodies[from + threadIdx.x];
    __syncthreads();
#pragma unroll 64
    for (int i = 0; i < blockDim.x; ++i) {
      const float dx = others[i].x - own.x, dy = others[i].y - own.y, dz = others[i].z - own.z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f),
                  pull = others[i].w * inverse * inverse * inverse;
      x += dx * pull, y += dy * pull, z += dz * pull;
    }
    __syncthreads();
  }
  forces[blockIdx.x * blockDim.x + threadIdx.x] = make_float4(x, y, z, 0);
}

__global__ void mandelbrot(int* out, int width, double left, double top, double step, int most) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x,
            row = blockIdx.y * blockDim.y + threadIdx.y;
  const double a = left + column * step, b = top + row * step;
  double x = 0, y = 0;
  int n = 0;
  for (; n < most && x * x + y * y < 4; ++n) {
    const double next = x * x - y * y + a;
    y = 2 * x * y + b;
    x = next;
  }
  out[row * width + column] = n;
}

__device__ float normal(float x) { return 0.5f * erfcf(-x * 0.70710678f); }
__global__ void options(float* out, const float* price, const float* strike, const float* years,
                        float rate, float volatility, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    const float root = volatility * sqrtf(years[i]);
    const float a =
        (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
    out[i] = price[i] * normal(a) - strike[i] * expf(-rate * years[i]) * normal(a - root);
  }
}

__global__ void histogram(unsigned* bins, const unsigned char* data, int n) {
  __shared__ unsigned own[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(own + data[i], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(bins + i, own[i]);
}

__global__ void bitonicSort(unsigned* keys) {
  __shared__ unsigned own[2048];
  for (int i = threadIdx.x; i < 2048; i += 1024) own[i] = keys[blockIdx.x * 2048 + i];
  for (unsigned size = 2; size <= 2048; size *= 2) {
    for (unsigned stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      const unsigned at = 2 * threadIdx.x - (threadIdx.x & (stride - 1)), a = own[at],
                     b = own[at + stride];
      if ((a > b) == ((at & size) == 0)) own[at] = b, own[at + stride] = a;
    }
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2048; i += 1024) keys[blockIdx.x * 2048 + i] = own[i];
}

/// 64 values in registers, each step of which needs them all.
__global__ void butterflies(float* out, const float* in) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = in[threadIdx.x + i * blockDim.x];
#pragma unroll
  for (int stride = 1; stride < 64; stride *= 2) {
#pragma unroll
    for (int i = 0; i < 64; ++i) {
      if (i & stride) continue;
      const float a = v[i], b = v[i + stride];
      v[i] = a + b, v[i + stride] = (a - b) * 0.7f;
    }
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) out[threadIdx.x + i * blockDim.x] = v[i];
}

template <int kCount>
__device__ void reverse(float* out, const float* in) {
  float v[kCount];
#pragma unroll
  for (int i = 0; i < kCount; ++i) v[i] = in[threadIdx.x + i * 1024];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) out[threadIdx.x + i * 1024] = v[i] * v[kCount - 1 - i] + i;
}
__global__ void __launch_bounds__(1024) boundedByThreads(float* out, const float* in) {
  reverse<96>(out, in);
}
__global__ void __launch_bounds__(256, 8) boundedByBlocks(float* out, const float* in) {
  reverse<48>(out, in);
}
__global__ void __maxnreg__(40) boundedByRegisters(float* out, const float* in) {
  reverse<64>(out, in);
}
__global__ void notBounded(float* out, const float* in) { reverse<96>(out, in); }

__device__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__global__ void recursion(int* out) { out[threadIdx.x] = fibonacci(threadIdx.x); }
__global__ void speaks(const int* in) { printf("%d: %d\n", threadIdx.x, in[threadIdx.x]); }
__global__ void functions(double* d, float* f) {
  d[threadIdx.x] = sin(d[threadIdx.x]) + pow(d[threadIdx.x], 1.5);
  f[threadIdx.x] = sinf(f[threadIdx.x]) + powf(f[threadIdx.x], 1.5f) + tgammaf(f[threadIdx.x]);
}
