// Exchanges between lanes of a warp: shuffles, votes, matches, reductions; also from different
// instructions.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

std::vector<std::uint32_t> runKernel(const std::string& body) {
  test::Module module(test::kernel(body));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  return {out.data(), out.data() + 32};
}

TEST_CASE("shuffles exchange values between lanes") {
  const auto up = runKernel(
      "shfl.sync.up.b32 %r2|%p1, %r1, 3, 0, -1;\n@!%p1 add.u32 %r2, %r2, 100;\nst.global.u32 "
      "[%rd3], %r2;");
  const auto down =
      runKernel("shfl.sync.down.b32 %r2, %r1, 5, 0x181f, -1;\nst.global.u32 [%rd3], %r2;");
  const auto cross =
      runKernel("shfl.sync.bfly.b32 %r2, %r1, 17, 31, -1;\nst.global.u32 [%rd3], %r2;");
  const auto index = runKernel(
      "mul.lo.u32 %r3, %r1, 7;\nshfl.sync.idx.b32 %r2, %r1, %r3, 0x101f, -1;\nst.global.u32 "
      "[%rd3], %r2;");
  for (std::uint32_t t = 0; t < 32; ++t) {
    CHECK(up[t] == (t < 3 ? t + 100 : t - 3));
    CHECK(down[t] == (t % 8 < 3 ? t + 5 : t));
    CHECK(cross[t] == (t ^ 17));
    CHECK(index[t] == ((t & 16) | ((t * 7) & 15)));
  }
}

TEST_CASE("votes combine the predicates of lanes") {
  const auto out = runKernel(R"(
  setp.lt.u32 %p1, %r1, 5;
  vote.sync.ballot.b32 %r2, %p1, -1;
  vote.sync.any.pred %p2, !%p1, -1;
  vote.sync.all.pred %p3, %p1, -1;
  vote.sync.uni.pred %p4, %p1, -1;
  selp.u32 %r3, 0x100, 0, %p2;
  selp.u32 %r4, 0x200, 0, %p3;
  selp.u32 %r5, 0x400, 0, %p4;
  or.b32 %r2, %r2, %r3;
  or.b32 %r2, %r2, %r4;
  or.b32 %r2, %r2, %r5;
  st.global.u32 [%rd3], %r2;
)");
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == 0x11fu);
}

TEST_CASE("matches and reductions combine the values of lanes") {
  const auto out = runKernel(R"(
  and.b32 %r2, %r1, 3;
  match.any.sync.b32 %r3, %r2, -1;
  match.all.sync.b32 %r4|%p1, 9, -1;
  redux.sync.add.s32 %r5, %r1, -1;
  redux.sync.max.s32 %r6, %r1, -1;
  popc.b32 %r4, %r4;
  @!%p1 mov.u32 %r4, 0;
  add.u32 %r5, %r5, %r6;
  mad.lo.u32 %r5, %r4, 10000, %r5;
  xor.b32 %r3, %r3, %r5;
  st.global.u32 [%rd3], %r3;
)");
  for (std::uint32_t t = 0; t < 32; ++t)
    CHECK(out[t] == ((0x11111111u << (t % 4)) ^ (320000 + 496 + 31)));
}

TEST_CASE("lanes on both sides of a branch meet in an exchange") {
  const auto out = runKernel(R"(
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra $low;
  mul.lo.u32 %r2, %r1, 10;
  shfl.sync.bfly.b32 %r3, %r2, 31, 31, -1;
  bra $store;
$low:
  shfl.sync.bfly.b32 %r3, %r1, 31, 31, -1;
$store:
  st.global.u32 [%rd3], %r3;
)");
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == (t < 16 ? (31 - t) * 10 : 31 - t));
}

// Lanes that have exited are not waited for.
TEST_CASE("groups of a warp exchange without waiting for the others") {
  const auto out = runKernel(R"(
  setp.eq.u32 %p1, %r1, 31;
  @%p1 exit;
  and.b32 %r2, %r1, 1;
  setp.eq.u32 %p2, %r2, 0;
  selp.b32 %r3, 0x55555555, 0xaaaaaaaa, %p2;
  redux.sync.add.u32 %r4, %r1, %r3;
  bar.warp.sync %r3;
  st.global.u32 [%rd3], %r4;
)");
  for (std::uint32_t t = 0; t < 31; ++t) CHECK(out[t] == (t % 2 ? 225u : 240u));
}

}  // namespace
