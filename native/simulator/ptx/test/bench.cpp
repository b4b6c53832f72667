// Measures thread instructions per second and core, in CPU time, which other load disturbs little;
// prints one JSON object.
#include <cstdlib>
#include <ctime>

#include "native/simulator/ptx/test/harness.h"

namespace {

constexpr const char* kText = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry fma(.param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .f32 %f<8>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  cvt.rn.f32.u32 %f1, %r2;
  mov.f32 %f2, 0f3F7FF000;
  mov.f32 %f3, 0f3A000000;
  mov.f32 %f4, %f1;
  mov.f32 %f5, %f1;
  mov.f32 %f6, %f1;
$loop:
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f4, %f4, %f2, %f3;
  fma.rn.f32 %f5, %f5, %f2, %f3;
  fma.rn.f32 %f6, %f6, %f2, %f3;
  fma.rn.f32 %f1, %f1, %f2, %f3;
  fma.rn.f32 %f4, %f4, %f2, %f3;
  fma.rn.f32 %f5, %f5, %f2, %f3;
  fma.rn.f32 %f6, %f6, %f2, %f3;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra $loop;
  add.f32 %f1, %f1, %f4;
  add.f32 %f5, %f5, %f6;
  add.f32 %f1, %f1, %f5;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r3, %r3, %r4, %r2;
  mul.wide.u32 %rd2, %r3, 4;
  add.s64 %rd3, %rd1, %rd2;
  st.global.f32 [%rd3], %f1;
  ret;
}
.visible .entry copy(.param .u64 in, .param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .f32 %f<8>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mad.lo.s32 %r3, %r3, %r4, %r2;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
$loop:
  ld.global.f32 %f1, [%rd4];
  add.f32 %f1, %f1, 0f3F800000;
  st.global.f32 [%rd5], %f1;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra $loop;
  ret;
}
// A sum of 256 numbers in shared memory, as textbooks have it.
.visible .entry sum(.param .u64 in, .param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<3>;
  .reg .f32 %f<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  .shared .align 4 .b8 part[1024];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, part;
  add.u32 %r3, %r3, %r4;
$round:
  ld.global.f32 %f1, [%rd4];
  st.shared.f32 [%r3], %f1;
  bar.sync 0;
  mov.u32 %r5, 128;
$half:
  setp.ge.u32 %p1, %r2, %r5;
  @%p1 bra $skip;
  shl.b32 %r6, %r5, 2;
  add.u32 %r6, %r6, %r3;
  ld.shared.f32 %f2, [%r6];
  ld.shared.f32 %f1, [%r3];
  add.f32 %f1, %f1, %f2;
  st.shared.f32 [%r3], %f1;
$skip:
  bar.sync 0;
  shr.u32 %r5, %r5, 1;
  setp.ne.u32 %p2, %r5, 0;
  @%p2 bra $half;
  ld.shared.f32 %f3, [part];
  bar.sync 0;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra $round;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f3;
  ret;
}
// Each thread multiplies with 16 numbers from shared memory: registers of many warps.
.visible .entry product(.param .u64 in, .param .u64 out, .param .u32 rounds)
{
  .reg .pred %p<2>;
  .reg .f32 %f<40>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<6>;
  .shared .align 16 .b8 tile[4096];
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.u32 %r1, [rounds];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd4, %rd1, %rd3;
  shl.b32 %r3, %r2, 2;
  mov.u32 %r4, tile;
  add.u32 %r3, %r3, %r4;
  mov.f32 %f32, 0f00000000;
$round:
  ld.global.f32 %f33, [%rd4];
  st.shared.f32 [%r3], %f33;
  bar.sync 0;
  ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile];
  ld.shared.v4.f32 {%f5, %f6, %f7, %f8}, [tile+16];
  ld.shared.v4.f32 {%f9, %f10, %f11, %f12}, [tile+32];
  ld.shared.v4.f32 {%f13, %f14, %f15, %f16}, [tile+48];
  ld.shared.f32 %f17, [%r3];
  fma.rn.f32 %f32, %f1, %f17, %f32;
  fma.rn.f32 %f32, %f2, %f17, %f32;
  fma.rn.f32 %f32, %f3, %f17, %f32;
  fma.rn.f32 %f32, %f4, %f17, %f32;
  fma.rn.f32 %f32, %f5, %f17, %f32;
  fma.rn.f32 %f32, %f6, %f17, %f32;
  fma.rn.f32 %f32, %f7, %f17, %f32;
  fma.rn.f32 %f32, %f8, %f17, %f32;
  fma.rn.f32 %f32, %f9, %f17, %f32;
  fma.rn.f32 %f32, %f10, %f17, %f32;
  fma.rn.f32 %f32, %f11, %f17, %f32;
  fma.rn.f32 %f32, %f12, %f17, %f32;
  fma.rn.f32 %f32, %f13, %f17, %f32;
  fma.rn.f32 %f32, %f14, %f17, %f32;
  fma.rn.f32 %f32, %f15, %f17, %f32;
  fma.rn.f32 %f32, %f16, %f17, %f32;
  bar.sync 0;
  add.s32 %r1, %r1, -1;
  setp.ne.s32 %p1, %r1, 0;
  @%p1 bra $round;
  add.s64 %rd5, %rd2, %rd3;
  st.global.f32 [%rd5], %f32;
  ret;
}
)";

double cpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double measure(test::Module& module, const std::string& kernel, std::uint32_t rounds,
               std::uint32_t threads = 256) {
  const std::uint32_t blocks = 65536 / threads;
  test::Buffer<float> in(module.memory, 65536), out(module.memory, 65536);
  const std::uint64_t before = simulator::executedThreadInstructions();
  const double start = cpuSeconds();
  const test::Shape shape{.grid = {blocks, 1, 1}, .block = {threads, 1, 1}};
  const CUresult result = kernel == "fma"
                              ? module.run(kernel, shape, out.address(), rounds)
                              : module.run(kernel, shape, in.address(), out.address(), rounds);
  const double seconds = cpuSeconds() - start;
  if (result != CUDA_SUCCESS) std::exit(1);
  return static_cast<double>(simulator::executedThreadInstructions() - before) / seconds;
}

}  // namespace

int main() {
  setenv("NVIDIA_VIRTUAL_SIMULATOR_THREADS", "1", 1);
  test::Module module(kText);
  measure(module, "fma", 100);
  std::printf(
      "{\"unit\": \"thread instructions per second and core\", \"float fma\": %.3g, \"load and "
      "store\": %.3g, "
      "\"sum with barriers\": %.3g, \"product of 1,024 threads\": %.3g}\n",
      measure(module, "fma", 2000), measure(module, "copy", 1000), measure(module, "sum", 100),
      measure(module, "product", 300, 1024));
}
