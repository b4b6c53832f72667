// Atomic operations on global and shared memory: results that do not depend on the order, and old values where only one is possible.
// conformance: flags=-arch=sm_90
#include "show.h"

struct Results {
  int add, sub, minimum, maximum, exchanged, bitsAnd, bitsOr, bitsXor, compared;
  unsigned unsignedMax, inc, dec;
  unsigned long long add64, max64, compared64;
  float floatAdd;
  double doubleAdd;
  int sharedAdd, sharedMax, turns;
};

__global__ void all(Results* r) {
  __shared__ int add, maximum;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) add = 0, maximum = -1000;
  __syncthreads();
  atomicAdd(&r->add, i);
  atomicSub(&r->sub, 2);
  atomicMin(&r->minimum, -i);
  atomicMax(&r->maximum, i * 3);
  atomicMax(&r->unsignedMax, 0x80000000u + i);
  atomicInc(&r->inc, 99);
  atomicDec(&r->dec, 99);
  atomicAnd(&r->bitsAnd, ~(1 << (i % 20)));
  atomicOr(&r->bitsOr, 1 << (i % 20));
  atomicXor(&r->bitsXor, i);
  atomicAdd(&r->add64, 1ull << 33);
  atomicMax(&r->max64, (1ull << 40) + i);
  atomicAdd(&r->floatAdd, 0.5f);
  atomicAdd(&r->doubleAdd, 0.125);
  atomicAdd(&add, 1);
  atomicMax(&maximum, int(threadIdx.x));
  for (int seen = r->compared;;) {
    const int found = atomicCAS(&r->compared, seen, seen + 3);
    if (found == seen) break;
    seen = found;
  }
  for (unsigned long long seen = 0;;) {
    const unsigned long long found = atomicCAS(&r->compared64, seen, seen + (5ull << 32));
    if (found == seen) break;
    seen = found;
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(&r->sharedAdd, add), atomicMax(&r->sharedMax, maximum);
  if (i == 0) r->exchanged = atomicExch(&r->turns, 77);
}

__global__ void locked(int* lock, int* counter) {
  if (threadIdx.x == 0) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *reinterpret_cast<volatile int*>(counter) = *reinterpret_cast<volatile int*>(counter) + 1;
    __threadfence();
    atomicExch(lock, 0);
  }
}

int main() {
  Results r = {}, *d = nullptr;
  r.bitsAnd = -1, r.turns = 12;
  SHOW(cudaMalloc(&d, sizeof r));
  SHOW(cudaMemcpy(d, &r, sizeof r, cudaMemcpyHostToDevice));
  all<<<8, 64>>>(d);
  showLaunch("all");
  SHOW(cudaMemcpy(&r, d, sizeof r, cudaMemcpyDeviceToHost));
  std::printf("add %d, sub %d, min %d, max %d, exchanged %d, turns %d\n", r.add, r.sub, r.minimum, r.maximum, r.exchanged, r.turns);
  std::printf("and %08x, or %08x, xor %08x, unsigned max %08x, inc %u, dec %u\n", r.bitsAnd, r.bitsOr, r.bitsXor, r.unsignedMax, r.inc,
              r.dec);
  std::printf("add64 %llx, max64 %llx, cas %d, cas64 %llx\n", r.add64, r.max64, r.compared, r.compared64);
  std::printf("float %g, double %g, shared %d, shared max %d\n", r.floatAdd, r.doubleAdd, r.sharedAdd, r.sharedMax);
  int counts[2] = {};
  SHOW(cudaMemset(d, 0, 8));
  locked<<<40, 32>>>(reinterpret_cast<int*>(d), reinterpret_cast<int*>(d) + 1);
  SHOW(cudaMemcpy(counts, d, sizeof counts, cudaMemcpyDeviceToHost));
  std::printf("lock %d, counter %d\n", counts[0], counts[1]);
}
