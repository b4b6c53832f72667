// Loads, stores, loops, shared memory, barriers: the basis of every kernel.
#include "native/simulator/ptx/test/harness.h"

#include <doctest/doctest.h>

namespace {

constexpr const char* kVectorAdd = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
  .reg .pred %p<2>;
  .reg .f32 %f<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a];
  ld.param.u64 %rd2, [b];
  ld.param.u64 %rd3, [c];
  ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $end;
  cvta.to.global.u64 %rd4, %rd1;
  mul.wide.s32 %rd5, %r1, 4;
  add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2;
  add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8];
  ld.global.f32 %f2, [%rd6];
  add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3;
  add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
$end:
  ret;
}
)";

TEST_CASE("vectors are added, and accesses outside of them fault") {
  test::Module module(kVectorAdd);
  constexpr std::uint32_t kCount = 1000;
  test::Buffer<float> a(module.memory, kCount), b(module.memory, kCount), c(module.memory, kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f * static_cast<float>(i);
  }
  CHECK(module.run("add", {.grid = {4, 1, 1}, .block = {256, 1, 1}}, a.address(), b.address(),
                   c.address(), kCount) == CUDA_SUCCESS);
  bool equal = true;
  for (std::uint32_t i = 0; i < kCount; ++i) equal &= c[i] == a[i] + b[i];
  CHECK(equal);
  CHECK(module.run("add", {.grid = {4, 1, 1}, .block = {256, 1, 1}}, a.address(), b.address(),
                   c.address(), kCount + 1) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(module.run("add", {.grid = {1, 1, 1}, .block = {32, 1, 1}}, a.address() + 2, b.address(),
                   c.address(), kCount) == CUDA_ERROR_MISALIGNED_ADDRESS);
}

constexpr const char* kBlockSum = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry sum(.param .u64 in, .param .u64 out)
{
  .shared .align 4 .b8 buffer[1024];
  .reg .pred %p<3>;
  .reg .b32 %r<12>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  shl.b32 %r3, %r2, 8;
  add.s32 %r3, %r3, %r1;
  mul.wide.u32 %rd3, %r3, 4;
  add.s64 %rd3, %rd1, %rd3;
  ld.global.u32 %r4, [%rd3];
  mov.u32 %r5, buffer;
  shl.b32 %r6, %r1, 2;
  add.s32 %r6, %r5, %r6;
  st.shared.u32 [%r6], %r4;
  mov.u32 %r7, 128;
$loop:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r7;
  @%p1 bra $skip;
  shl.b32 %r8, %r7, 2;
  add.s32 %r9, %r6, %r8;
  ld.shared.u32 %r10, [%r9];
  ld.shared.u32 %r11, [%r6];
  add.s32 %r11, %r11, %r10;
  st.shared.u32 [%r6], %r11;
$skip:
  shr.u32 %r7, %r7, 1;
  setp.ne.u32 %p2, %r7, 0;
  @%p2 bra $loop;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd4, %rd2, %rd4;
  ld.shared.u32 %r4, [buffer];
  st.global.u32 [%rd4], %r4;
  ret;
}
)";

TEST_CASE("each block sums its numbers in shared memory") {
  test::Module module(kBlockSum);
  test::Buffer<std::uint32_t> in(module.memory, 16 * 256), out(module.memory, 16);
  for (std::uint32_t i = 0; i < in.size(); ++i) in[i] = i * 7;
  CHECK(module.run("sum", {.grid = {16, 1, 1}, .block = {256, 1, 1}}, in.address(),
                   out.address()) == CUDA_SUCCESS);
  for (std::uint32_t block = 0; block < 16; ++block) {
    std::uint32_t expected = 0;
    for (std::uint32_t i = 0; i < 256; ++i) expected += in[block * 256 + i];
    CHECK(out[block] == expected);
  }
  CHECK(module.program->kernels()[0].staticSharedBytes == 1024u);
}

}  // namespace
