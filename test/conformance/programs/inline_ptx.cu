// Instructions that C++ does not have: carries, bit fields, predicates, special registers, cache hints.
// conformance:
#include "show.h"

__global__ void run(const unsigned* in, unsigned* out) {
  const unsigned a = in[0], b = in[1], c = in[2];
  unsigned r[16] = {};
  asm("add.cc.u32 %0, %2, %3; addc.u32 %1, %4, 0;" : "=r"(r[0]), "=r"(r[1]) : "r"(a), "r"(b), "r"(c));
  asm("sub.cc.u32 %0, %2, %3; subc.u32 %1, %4, 0;" : "=r"(r[2]), "=r"(r[3]) : "r"(c), "r"(a), "r"(b));
  asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, 0;" : "=r"(r[4]), "=r"(r[5]) : "r"(a), "r"(b), "r"(c));
  asm("bfe.u32 %0, %1, 5, 11;" : "=r"(r[6]) : "r"(a));
  asm("bfe.s32 %0, %1, 20, 12;" : "=r"(r[7]) : "r"(a));
  asm("bfi.b32 %0, %1, %2, 9, 8;" : "=r"(r[8]) : "r"(a), "r"(b));
  asm("lop3.b32 %0, %1, %2, %3, 0x96;" : "=r"(r[9]) : "r"(a), "r"(b), "r"(c));
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r[10]) : "r"(a), "r"(b), "r"(c));
  asm("{.reg .pred p, q; setp.gt.and.u32 p|q, %1, %2, 1; selp.u32 %0, 11, 22, q;}" : "=r"(r[11]) : "r"(a), "r"(b));
  asm("slct.u32.s32 %0, %1, %2, %3;" : "=r"(r[12]) : "r"(a), "r"(b), "r"(c));
  asm("bfind.u32 %0, %1;" : "=r"(r[13]) : "r"(c));
  asm("ld.global.nc.u32 %0, [%1+4];" : "=r"(r[14]) : "l"(in));
  asm("shf.l.wrap.b32 %0, %1, %2, 13;" : "=r"(r[15]) : "r"(a), "r"(b));
  for (int i = 0; i < 16; ++i) out[i] = r[i];
}

__global__ void registers(unsigned* out) {
  unsigned lane, warps, threads, block, blocks, y;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  asm("mov.u32 %0, %%ntid.x;" : "=r"(threads));
  asm("mov.u32 %0, %%ctaid.y;" : "=r"(block));
  asm("mov.u32 %0, %%nctaid.y;" : "=r"(blocks));
  asm("mov.u32 %0, %%tid.y;" : "=r"(y));
  warps = warpSize;
  const unsigned rank = threadIdx.x + threadIdx.y * blockDim.x;
  if (blockIdx.x == 2 && blockIdx.y == 1 && rank == 45)
    out[0] = lane, out[1] = warps, out[2] = threads, out[3] = block, out[4] = blocks, out[5] = y;
}

int main() {
  const unsigned in[] = {0xf1234567, 0x0edcba99, 7};
  unsigned *dIn = nullptr, *dOut = nullptr, out[16] = {};
  SHOW(cudaMalloc(&dIn, sizeof in));
  SHOW(cudaMalloc(&dOut, sizeof out));
  SHOW(cudaMemcpy(dIn, in, sizeof in, cudaMemcpyHostToDevice));
  run<<<1, 1>>>(dIn, dOut);
  showLaunch("run");
  SHOW(cudaMemcpy(out, dOut, sizeof out, cudaMemcpyDeviceToHost));
  for (unsigned value : out) std::printf("%x ", value);
  std::printf("\n");
  registers<<<dim3(3, 2), dim3(20, 4)>>>(dOut);
  showLaunch("registers");
  SHOW(cudaMemcpy(out, dOut, 24, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 6; ++i) std::printf("%u ", out[i]);
  std::printf("\n");
}
