// Measures thread instructions per second and core; prints one JSON object.
#include <chrono>

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
)";

double measure(test::Module& module, const char* kernel, std::uint32_t rounds) {
  constexpr std::uint32_t kBlocks = 256, kThreads = 256;
  test::Buffer<float> in(module.memory, kBlocks * kThreads), out(module.memory, kBlocks * kThreads);
  const std::uint64_t before = simulator::executedThreadInstructions();
  const auto start = std::chrono::steady_clock::now();
  const test::Shape shape{.grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}};
  const CUresult result =
      kernel[0] == 'f' ? module.run(kernel, shape, out.address(), rounds) : module.run(kernel, shape, in.address(), out.address(), rounds);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK_EQUAL(result, CUDA_SUCCESS);
  return static_cast<double>(simulator::executedThreadInstructions() - before) / seconds;
}

}  // namespace

int main() {
  setenv("NVIDIA_VIRTUAL_SIMULATOR_THREADS", "1", 1);
  test::Module module(kText);
  measure(module, "fma", 100);
  std::printf("{\"unit\": \"thread instructions per second and core\", \"float fma\": %.3g, \"load and store\": %.3g}\n",
              measure(module, "fma", 4000), measure(module, "copy", 2000));
  return test::finish();
}
