// Barriers of blocks, of part of a block, after divergence, of clusters and of grids.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

// Each thread writes, waits, and reads what another warp wrote.
TEST_CASE("a barrier holds for warps on both sides of a branch") {
  test::Module module(test::kernel(R"(
  .shared .align 4 .b8 s[1024];
  mov.u32 %r2, s;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r2, %r3;
  setp.lt.u32 %p1, %r1, 100;
  @%p1 bra $low;
  st.shared.u32 [%r3], %r1;
  bar.sync 0;
  bra $meet;
$low:
  mul.lo.u32 %r4, %r1, 2;
  st.shared.u32 [%r3], %r4;
  bar.sync 0;
$meet:
  xor.b32 %r5, %r1, 255;
  shl.b32 %r5, %r5, 2;
  add.u32 %r5, %r2, %r5;
  ld.shared.u32 %r6, [%r5];
  st.global.u32 [%rd3], %r6;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 256);
  CHECK(module.run("k", {.block = {256, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 256; ++t)
    CHECK(out[t] == ((t ^ 255) < 100 ? (t ^ 255) * 2 : t ^ 255));
}

TEST_CASE("threads that have exited are not waited for") {
  test::Module module(test::kernel(R"(
  setp.gt.u32 %p1, %r1, 40;
  @%p1 exit;
  bar.sync 0;
  st.global.u32 [%rd3], 1;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 128);
  CHECK(module.run("k", {.block = {128, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  std::uint32_t sum = 0;
  for (std::uint32_t t = 0; t < 128; ++t) sum += out[t];
  CHECK(sum == 41u);
}

TEST_CASE("a barrier reduces predicates over its threads") {
  test::Module module(test::kernel(R"(
  setp.lt.u32 %p1, %r1, 70;
  bar.red.popc.u32 %r2, 0, %p1;
  bar.red.and.pred %p2, 0, %p1;
  bar.red.or.pred %p3, 0, %p1;
  barrier.sync.aligned 3, 128;
  selp.u32 %r3, 1000, 0, %p2;
  selp.u32 %r4, 2000, 0, %p3;
  add.u32 %r2, %r2, %r3;
  add.u32 %r2, %r2, %r4;
  st.global.u32 [%rd3], %r2;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 128);
  CHECK(module.run("k", {.block = {128, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 2070u);
  CHECK(out[127] == 2070u);
}

// Two warps produce, two consume.
TEST_CASE("bar.arrive does not wait") {
  test::Module module(test::kernel(R"(
  .shared .align 4 .b8 s[512];
  mov.u32 %r2, s;
  setp.ge.u32 %p1, %r1, 64;
  @%p1 bra $consume;
  shl.b32 %r3, %r1, 2;
  add.u32 %r3, %r2, %r3;
  st.shared.u32 [%r3], %r1;
  bar.arrive 2, 128;
  ret;
$consume:
  bar.sync 2, 128;
  sub.u32 %r4, 127, %r1;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r2, %r4;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd3], %r5;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 128);
  CHECK(module.run("k", {.block = {128, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 64; t < 128; ++t) CHECK(out[t] == 127 - t);
}

// There are many more blocks than host threads.
TEST_CASE("all blocks of a cooperative grid can wait for each other") {
  test::Module module(test::kernel(R"(
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %nctaid.x;
  atom.global.add.u32 %r4, [%rd1], 1;
$wait:
  ld.acquire.gpu.global.u32 %r5, [%rd1];
  setp.lt.u32 %p1, %r5, %r3;
  @%p1 bra $wait;
  mul.wide.u32 %rd4, %r2, 4;
  add.s64 %rd4, %rd1, %rd4;
  mov.u32 %r6, %envreg1;
  mov.u32 %r7, %envreg2;
  or.b32 %r6, %r6, %r7;
  set.ne.u32.u32 %r6, %r6, 0;
  st.global.u32 [%rd4+4], %r6;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 201);
  CHECK(module.run("k", {.grid = {200, 1, 1}, .cooperative = true}, out.address(), out.address()) ==
        CUDA_SUCCESS);
  CHECK(out[0] == 200u);
  for (std::uint32_t b = 1; b <= 200; ++b) CHECK(out[b] == 0xffffffffu);
  out[0] = 0;
  CHECK(module.run("k", {.grid = {20, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[1] == 0u);
}

// Numba declares them so; the driver has them from libcudadevrt.
const std::string kGridGroups =
    ".extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 s);\n"
    ".extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n";
const std::string kGetHandle = R"(
  {
    .param .b32 scope;
    .param .b64 handle;
    st.param.b32 [scope], 1;
    call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %rd5, [handle];
  }
)";
const std::string kSynchronise = R"(
  {
    .param .b64 handle;
    .param .b32 flags;
    .param .b32 result;
    st.param.b64 [handle], %rd5;
    st.param.b32 [flags], 0;
    call.uni (result), cudaCGSynchronize, (handle, flags);
    ld.param.b32 %r9, [result];
  }
)";

// Each thread counts itself in three rounds, and counts what it missed behind each barrier.
TEST_CASE("the threads of a cooperative grid synchronise by the device runtime") {
  test::Module module(test::kernel(kGetHandle + R"(
  mov.u32 %r2, 4800;
  mov.u32 %r3, 0;
$round:
  add.u32 %r3, %r3, %r2;
  red.global.add.u32 [%rd1], 1;
)" + kSynchronise + R"(
  ld.volatile.global.u32 %r4, [%rd1];
  setp.ne.u32 %p1, %r4, %r3;
  @%p1 red.global.add.u32 [%rd1+4], 1;
  red.global.add.u32 [%rd1+8], %r9;
)" + kSynchronise + R"(
  setp.lt.u32 %p1, %r3, 14400;
  @%p1 bra $round;
)",
                                   kGridGroups));
  test::Buffer<std::uint32_t> out(module.memory, 3);
  const test::Shape shape{.grid = {5, 4, 3}, .block = {40, 2, 1}, .cooperative = true};
  REQUIRE(module.run("k", shape, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 14400u);
  CHECK(out[1] == 0u);
  CHECK(out[2] == 0u);
  CHECK(module.run("k", {.grid = {5, 1, 1}}, out.address(), out.address()) ==
        CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("a block reads shared memory of the other block of its cluster") {
  test::Module module(test::kernel(R"(
  .shared .align 4 .b8 s[16];
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, s;
  st.shared.u32 [%r4], %r3;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  xor.b32 %r5, %r2, 1;
  mapa.shared::cluster.u32 %r6, %r4, %r5;
  ld.shared::cluster.u32 %r7, [%r6];
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  mul.wide.u32 %rd4, %r3, 4;
  add.s64 %rd4, %rd1, %rd4;
  st.global.u32 [%rd4], %r7;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 8);
  CHECK(module.run("k", {.grid = {8, 1, 1}, .block = {64, 1, 1}, .cluster = {2, 1, 1}},
                   out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t b = 0; b < 8; ++b) CHECK(out[b] == (b ^ 1));
}

TEST_CASE("an mbarrier waits for asynchronous copies") {
  test::Module module(test::kernel(R"(
  .shared .align 8 .b8 m[8];
  .shared .align 4 .b8 s[512];
  mov.u32 %r2, m;
  mov.u32 %r3, s;
  setp.ne.u32 %p1, %r1, 0;
  @!%p1 mbarrier.init.shared.b64 [%r2], 128;
  bar.sync 0;
  shl.b32 %r4, %r1, 2;
  add.u32 %r4, %r3, %r4;
  cp.async.ca.shared.global [%r4], [%rd3], 4;
  cp.async.commit_group;
  cp.async.mbarrier.arrive.shared.b64 [%r2];
  cp.async.wait_group 0;
  mbarrier.arrive.shared.b64 %rd4, [%r2];
$wait:
  mbarrier.test_wait.shared.b64 %p2, [%r2], %rd4;
  @!%p2 bra $wait;
  xor.b32 %r5, %r1, 127;
  shl.b32 %r5, %r5, 2;
  add.u32 %r5, %r3, %r5;
  ld.shared.u32 %r6, [%r5];
  st.global.u32 [%rd3+512], %r6;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 256);
  for (std::uint32_t t = 0; t < 128; ++t) out[t] = t * 3;
  CHECK(module.run("k", {.block = {128, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 128; ++t) CHECK(out[128 + t] == (t ^ 127) * 3);
}

TEST_CASE("one thread copies a block's data there and back") {
  test::Module module(test::kernel(test::kBulkSlots + R"(
  @%p1 bra $await;
  mov.u32 %r4, 256;
  cp.async.bulk.prefetch.L2.global [%rd1], 512;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], %r4, [%r2];
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r3+256], [%rd1+256], 240, [m];
  mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 496;
$await:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra $await;
  shl.b32 %r5, %r1, 2;
  sub.u32 %r5, %r3, %r5;
  ld.shared.u32 %r6, [%r5+508];
  st.shared.u32 [%r5+1020], %r6;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p1 ret;
  add.u32 %r3, %r3, 528;
  cvt.u64.u32 %rd4, %r3;
  cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%rd4+-16], 512;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  cp.async.bulk.wait_group 0;
)"));
  test::Buffer<std::uint32_t> from(module.memory, 128), to(module.memory, 128);
  for (std::uint32_t t = 0; t < 128; ++t) from[t] = t * 3;
  CHECK(module.run("k", {.block = {128, 1, 1}}, from.address(), to.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 124; ++t) CHECK(to[t] == t * 3);
  for (std::uint32_t t = 124; t < 128; ++t) CHECK(to[t] == 0);
}

TEST_CASE("a bulk copy fills another block of the cluster") {
  test::Module module(test::kernel(test::kBulkSlots + R"(
  mov.u32 %r4, %cluster_ctarank;
  shl.b32 %r5, %r1, 2;
  add.u32 %r5, %r5, %r3;
  add.u32 %r6, %r4, 7;
  st.shared.u32 [%r5], %r6;
  @!%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 128;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  xor.b32 %r7, %r4, 1;
  mapa.shared::cluster.u32 %r8, %r3, %r7;
  mapa.shared::cluster.u32 %r9, %r2, %r7;
  @%p1 bra $await;
  add.u32 %r8, %r8, 128;
  cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r8], [%r3], 128, [%r9];
$await:
  mbarrier.try_wait.parity.shared.b64 %p2, [%r2], 0;
  @!%p2 bra $await;
  ld.shared.u32 %r6, [%r5+128];
  mad.lo.u32 %r4, %r4, 32, %r1;
  mul.wide.u32 %rd4, %r4, 4;
  add.s64 %rd4, %rd4, %rd1;
  st.global.u32 [%rd4], %r6;
  barrier.cluster.arrive;
  barrier.cluster.wait;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}},
                   out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(out[t] == (t < 32 ? 8 : 7));
}

TEST_CASE("a bulk copy outside of memory, or beside a multiple of 16, is a fault") {
  const std::string copy =
      "@%p1 ret;\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes ";
  const auto resultOf = [&](const std::string& operands) {
    test::Module module(test::kernel(test::kBulkSlots + copy + operands + ", [m];"));
    test::Buffer<std::uint32_t> in(module.memory, 128);
    return module.run("k", {}, in.address(), in.address());
  };
  CHECK(resultOf("[s], [%rd1], 512") == CUDA_SUCCESS);
  CHECK(resultOf("[s], [%rd1+16], 512") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("[s+1024], [%rd1], 512") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("[s+8], [%rd1], 16") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("[s], [%rd1+8], 16") == CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_CASE("threads that wait for each other for ever end the launch") {
  test::Module module(test::kernel(R"(
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bar.sync 1, 64;
  @!%p1 bar.sync 2, 64;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.block = {64, 1, 1}}, out.address(), out.address()) ==
        CUDA_ERROR_LAUNCH_TIMEOUT);
}

// Programs rely on this without a second barrier: on hardware, all warps read long before one can
// write.
TEST_CASE("all warps read a value behind a barrier before one of them writes it again") {
  test::Module module(test::kernel(R"(
  .shared .align 4 .b8 s[4096];
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, s;
  add.u32 %r2, %r2, %r3;
  mov.u32 %r4, 0;
  mov.u32 %r5, 0;
$round:
  st.shared.u32 [%r2], %r5;
  bar.sync 0;
  ld.shared.u32 %r5, [s];
  add.u32 %r5, %r5, 1;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 50;
  @%p1 bra $round;
  st.global.u32 [%rd3], %r5;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 1024);
  CHECK(module.run("k", {.block = {1024, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 1024; ++t) CHECK(out[t] == 50u);
}

}  // namespace
