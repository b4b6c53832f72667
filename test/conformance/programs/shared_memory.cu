// Static shared memory and barriers: a transposition by tiles, and a scan.
// conformance:
#include "show.h"

constexpr int kSide = 100, kTile = 32;

__global__ void transpose(const int* in, int* out) {
  __shared__ int tile[kTile][kTile + 1];
  const int x = blockIdx.x * kTile + threadIdx.x, y = blockIdx.y * kTile + threadIdx.y;
  for (int row = 0; row < kTile; row += blockDim.y)
    if (x < kSide && y + row < kSide) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * kSide + x];
  __syncthreads();
  const int newX = blockIdx.y * kTile + threadIdx.x, newY = blockIdx.x * kTile + threadIdx.y;
  for (int row = 0; row < kTile; row += blockDim.y)
    if (newX < kSide && newY + row < kSide) out[(newY + row) * kSide + newX] = tile[threadIdx.x][threadIdx.y + row];
}

__global__ void scan(int* x) {
  __shared__ int two[2][256];
  int from = 0;
  two[0][threadIdx.x] = x[threadIdx.x];
  for (int step = 1; step < 256; step *= 2) {
    __syncthreads();
    two[1 - from][threadIdx.x] = two[from][threadIdx.x] + (int(threadIdx.x) >= step ? two[from][threadIdx.x - step] : 0);
    from = 1 - from;
  }
  x[threadIdx.x] = two[from][threadIdx.x];
}

__global__ void barrierVotes(int* out) {
  const int count = __syncthreads_count(threadIdx.x % 3 == 0);
  const int all = __syncthreads_and(threadIdx.x < 1000), any = __syncthreads_or(threadIdx.x == 95);
  if (threadIdx.x == 0) out[0] = count, out[1] = all != 0, out[2] = any != 0;
}

int main() {
  static int in[kSide * kSide], out[kSide * kSide];
  for (int i = 0; i < kSide * kSide; ++i) in[i] = i * 31 % 1009;
  int *a = nullptr, *b = nullptr, wrong = 0;
  SHOW(cudaMalloc(&a, sizeof in));
  SHOW(cudaMalloc(&b, sizeof out));
  SHOW(cudaMemcpy(a, in, sizeof in, cudaMemcpyHostToDevice));
  transpose<<<dim3(4, 4), dim3(32, 8)>>>(a, b);
  showLaunch("transpose");
  SHOW(cudaMemcpy(out, b, sizeof out, cudaMemcpyDeviceToHost));
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) wrong += out[y * kSide + x] != in[x * kSide + y];
  std::printf("%d wrong\n", wrong);
  scan<<<1, 256>>>(a);
  showLaunch("scan");
  SHOW(cudaMemcpy(out, a, 1024, cudaMemcpyDeviceToHost));
  std::printf("%d %d %d %d\n", out[0], out[1], out[100], out[255]);
  barrierVotes<<<1, 96>>>(a);
  SHOW(cudaMemcpy(out, a, 12, cudaMemcpyDeviceToHost));
  std::printf("count %d, all %d, any %d\n", out[0], out[1], out[2]);
}
