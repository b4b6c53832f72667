// atom and red, from many blocks at once.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

TEST_CASE("atomic operations of many blocks all have their effect") {
  test::Module module(test::kernel(R"(
  atom.global.add.u32 %r2, [%rd1], 1;
  red.global.add.f32 [%rd1+4], 0f3F000000;
  atom.global.add.f64 %d1, [%rd1+8], 0d3FD0000000000000;
  atom.global.inc.u32 %r2, [%rd1+16], 6;
  atom.global.dec.u32 %r2, [%rd1+20], 9;
  atom.global.max.s32 %r2, [%rd1+24], %r1;
  neg.s32 %r3, %r1;
  atom.global.min.s32 %r2, [%rd1+28], %r3;
  red.global.or.b32 [%rd1+32], %r1;
  cvt.u64.u32 %rd4, %r1;
  atom.global.add.u64 %rd5, [%rd1+40], %rd4;
  atom.add.noftz.f16x2 %r4, [%rd1+48], 0x3c003800;
  red.relaxed.gpu.global.xor.b32 [%rd1+52], %r1;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 16);
  constexpr std::uint32_t kBlocks = 64, kThreads = 96;
  out[12] = 0;
  CHECK(module.run("k", {.grid = {kBlocks, 1, 1}, .block = {kThreads, 1, 1}}, out.address(),
                   out.address()) == CUDA_SUCCESS);
  float single = 0;
  double twice = 0;
  std::memcpy(&single, &out[1], 4);
  std::memcpy(&twice, &out[2], 8);
  CHECK(out[0] == kBlocks * kThreads);
  CHECK(single == 0.5f * kBlocks * kThreads);
  CHECK(twice == 0.25 * kBlocks * kThreads);
  CHECK(out[4] == kBlocks * kThreads % 7);
  CHECK(out[5] == (10 - kBlocks * kThreads % 10) % 10);
  CHECK(out[6] == kThreads - 1);
  CHECK(out[7] == static_cast<std::uint32_t>(-95));
  CHECK(out[8] == 127u);
  CHECK(out[10] == kBlocks * (kThreads * (kThreads - 1) / 2));
  // 2048 and 1024: from there on, adding 1 and 0.5 has no effect.
  CHECK(out[12] == 0x68006400u);
  CHECK(out[13] == 0u);
}

TEST_CASE("a loop of compare and swap loses no addition") {
  test::Module module(test::kernel(R"(
$again:
  ld.volatile.global.u64 %rd4, [%rd1];
  add.u64 %rd5, %rd4, 3;
  atom.global.cas.b64 %rd6, [%rd1], %rd4, %rd5;
  setp.ne.u64 %p1, %rd4, %rd6;
  @%p1 bra $again;
)"));
  test::Buffer<std::uint64_t> out(module.memory, 1);
  CHECK(module.run("k", {.grid = {40, 1, 1}, .block = {64, 1, 1}}, out.address(), out.address()) ==
        CUDA_SUCCESS);
  CHECK(out[0] == 3ull * 40 * 64);
}

TEST_CASE("atomic operations work in shared memory") {
  test::Module module(test::kernel(R"(
  .shared .align 8 .b8 s[16];
  mov.u32 %r2, s;
  setp.ne.u32 %p1, %r1, 0;
  @!%p1 st.shared.v2.u32 [%r2], {0, 0};
  bar.sync 0;
  atom.shared.add.u32 %r3, [%r2], 2;
  cvta.shared.u64 %rd4, %rd5;
  cvt.u64.u32 %rd5, %r2;
  cvta.shared.u64 %rd4, %rd5;
  atom.exch.b32 %r4, [%rd4+4], %r1;
  bar.sync 0;
  ld.shared.u32 %r5, [%r2];
  st.global.u32 [%rd3], %r5;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.block = {64, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[63] == 128u);
}

}  // namespace
