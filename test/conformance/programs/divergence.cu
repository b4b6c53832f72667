// Threads of a warp that part and meet again: loops of different lengths, early returns, switches, barriers afterwards.
// conformance:
#include "show.h"

__global__ void loops(int* out) {
  const int i = threadIdx.x;
  int value = 0;
  for (int turn = 0; turn < i % 7; ++turn) {
    if ((i + turn) % 3 == 0) continue;
    if (turn > 4) break;
    int inner = i;
    while (inner > 0) {
      value += inner & 1;
      inner >>= 1;
      if (value > 20) goto done;
    }
    value += 10;
  }
done:
  out[i] = value * 1000 + i;
}

__global__ void returns(int* out) {
  const int i = threadIdx.x;
  out[i] = -1;
  if (i % 2) return;
  out[i] = -2;
  if (i > 50) return;
  for (int turn = 0;; ++turn) {
    if (turn == i) return;
    out[i] += turn;
  }
}

__global__ void switches(int* out) {
  const int i = threadIdx.x;
  int value = 0;
  switch (i % 6) {
    case 0:
      value = 1;
      break;
    case 1:
      value = i * i;
    case 2:
      value += 7;
      break;
    case 3:
      value = i < 20 ? 5 : __popc(i);
      break;
    case 4:
      value = -i;
      break;
    default:
      value = 1 << (i % 8);
  }
  out[i] = value;
}

__global__ void barriersAfter(int* out) {
  __shared__ int shared[64];
  const int i = threadIdx.x;
  if (i % 2)
    shared[i] = i;
  else if (i % 4)
    shared[i] = -i;
  else
    for (int turn = 0; turn <= i; ++turn) shared[i] = turn * turn;
  __syncthreads();
  int sum = 0;
  for (int turn = 0; turn <= i % 5; ++turn) sum += shared[(i + turn) % 64];
  __syncthreads();
  shared[63 - i] = sum;
  __syncthreads();
  out[i] = shared[i];
}

__global__ void warpBarrier(int* out) {
  __shared__ int shared[32];
  const int i = threadIdx.x;
  if (i < 16)
    shared[i] = i * 2;
  else
    shared[i] = i * 3;
  __syncwarp();
  int value = shared[31 - i];
  if (i % 2 == 0) {
    __syncwarp(0x55555555);
    shared[i] = value;
    __syncwarp(0x55555555);
    value += shared[(i + 2) % 32];
  }
  out[i] = value;
}

static void show(const char* what, const int* d, int n) {
  int out[64];
  std::printf("%s: %s, ", what, resultName(cudaGetLastError()));
  std::printf("%s;", resultName(cudaMemcpy(out, d, n * sizeof(int), cudaMemcpyDeviceToHost)));
  for (int i = 0; i < n; ++i) std::printf(" %d", out[i]);
  std::printf("\n");
}

int main() {
  int* d = nullptr;
  SHOW(cudaMalloc(&d, 256));
  SHOW(cudaMemset(d, 0, 256));
  loops<<<1, 64>>>(d);
  show("loops", d, 64);
  returns<<<1, 64>>>(d);
  show("returns", d, 64);
  switches<<<1, 64>>>(d);
  show("switches", d, 64);
  barriersAfter<<<1, 64>>>(d);
  show("barriers after", d, 64);
  warpBarrier<<<1, 32>>>(d);
  show("warp barrier", d, 32);
}
