// Thread instructions per second on the simulated GPU: float arithmetic in a loop with a known
// number of instructions.
#include <sched.h>

#include "measure.h"

constexpr int kTurns = 2000, kBlocks = 64, kThreads = 256, kCounted = 32;

// 32 multiply-adds in four chains. The three or four instructions of the loop are not counted.
__global__ void multiplyAdd(float* x) {
  float a = x[threadIdx.x], b = a + 1, c = a + 2, d = a + 3;
#pragma unroll 1
  for (int turn = 0; turn < kTurns; ++turn) {
#pragma unroll
    for (int i = 0; i < kCounted / 4; ++i) {
      asm volatile("fma.rn.f32 %0, %0, 0f3F7FF972, 0f3DCCCCCD;" : "+f"(a));
      asm volatile("fma.rn.f32 %0, %0, 0f3F7FF972, 0f3DCCCCCD;" : "+f"(b));
      asm volatile("fma.rn.f32 %0, %0, 0f3F7FF972, 0f3DCCCCCD;" : "+f"(c));
      asm volatile("fma.rn.f32 %0, %0, 0f3F7FF972, 0f3DCCCCCD;" : "+f"(d));
    }
  }
  x[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d;
}

int main() {
  float* x = nullptr;
  CHECK(cudaMalloc(&x, kBlocks * kThreads * sizeof(float)));
  CHECK(cudaMemset(x, 0, kBlocks * kThreads * sizeof(float)));
  multiplyAdd<<<1, kThreads>>>(x);
  CHECK(cudaDeviceSynchronize());
  const double time = best(3, [&] {
    multiplyAdd<<<kBlocks, kThreads>>>(x);
    CHECK(cudaDeviceSynchronize());
  });
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
  report("thread instructions a second and core",
         double(kTurns) * kCounted * kBlocks * kThreads / time / count / 1e6, "million/s");
}
