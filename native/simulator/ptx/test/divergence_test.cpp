// Lanes that part and meet again: loops, early returns, tables of branches, locks between lanes of
// a warp.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

std::vector<std::uint32_t> runKernel(const std::string& body, std::uint32_t threads,
                                     std::uint32_t blocks = 1) {
  test::Module module(test::kernel(body));
  test::Buffer<std::uint32_t> out(module.memory, 1024);
  CHECK(module.run("k", {.grid = {blocks, 1, 1}, .block = {threads, 1, 1}}, out.address(),
                   out.address()) == CUDA_SUCCESS);
  return {out.data(), out.data() + 1024};
}

TEST_CASE("lanes meet behind loops of different length") {
  const auto out = runKernel(R"(
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
$loop:
  setp.ge.u32 %p1, %r3, %r1;
  @%p1 bra $done;
  add.u32 %r2, %r2, %r3;
  add.u32 %r3, %r3, 1;
  bra $loop;
$done:
  activemask.b32 %r4;
  popc.b32 %r4, %r4;
  shl.b32 %r4, %r4, 16;
  or.b32 %r2, %r2, %r4;
  st.global.u32 [%rd3], %r2;
)",
                             64);
  for (std::uint32_t t = 0; t < 64; ++t)
    CHECK(out[t] == (t * (t - 1) / 2 | 32u << 16));  // all lanes meet behind the loop
}

TEST_CASE("lanes return early") {
  const auto out = runKernel(R"(
  and.b32 %r2, %r1, 3;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 ret;
  setp.eq.u32 %p2, %r2, 2;
  @%p2 bra $two;
  mov.u32 %r3, 7;
  bra $store;
$two:
  mov.u32 %r3, 9;
$store:
  st.global.u32 [%rd3], %r3;
  @!%p2 exit;
  st.global.u32 [%rd3], 11;
)",
                             32);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == (t % 4 == 1 ? 0u : t % 4 == 2 ? 11u : 7u));
}

TEST_CASE("a table of branches is followed by each lane") {
  const auto out = runKernel(R"(
  and.b32 %r2, %r1, 3;
  table: .branchtargets $a, $b, $c, $b;
  brx.idx %r2, table;
$a:
  mov.u32 %r3, 10;
  bra $end;
$b:
  mov.u32 %r3, 20;
  bra $end;
$c:
  mov.u32 %r3, 30;
$end:
  st.global.u32 [%rd3], %r3;
)",
                             32);
  const std::uint32_t expected[] = {10, 20, 30, 20};
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == expected[t % 4]);
}

// Inline assembly brings the same label into a function several times.
TEST_CASE("inner scopes have labels of their own") {
  const auto out = runKernel(R"(
  mov.u32 %r2, 0;
  mov.u32 %r3, 0;
  { AGAIN: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 5; @%p1 bra AGAIN; }
  { AGAIN: add.u32 %r3, %r3, 10; setp.lt.u32 %p1, %r3, %r1;
    { .reg .pred %inner; setp.lt.u32 %inner, %r3, 20; @%inner bra AGAIN; }
    @%p1 bra AGAIN; }
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd3], %r2;
)",
                             32);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == (t <= 20 ? 25u : t <= 30 ? 35u : 45u));
}

// The lane that holds the lock has left the loop in which the others wait.
TEST_CASE("lanes of a warp take turns in a lock") {
  const auto out = runKernel(R"(
$try:
  atom.global.cas.b32 %r2, [%rd1+4000], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra $try;
  ld.volatile.global.u32 %r3, [%rd1+4004];
  add.u32 %r3, %r3, 1;
  st.volatile.global.u32 [%rd1+4004], %r3;
  membar.gl;
  atom.global.exch.b32 %r2, [%rd1+4000], 0;
)",
                             96, 3);
  CHECK(out[1001] == 96u * 3);
}

TEST_CASE("guards select the lanes of an instruction") {
  const auto out = runKernel(R"(
  setp.lt.u32 %p1, %r1, 10;
  setp.gt.u32 %p2|%p3, %r1, 20;
  mov.u32 %r2, 1;
  @%p1 mov.u32 %r2, 2;
  @!%p3 add.u32 %r2, %r2, 5;
  and.pred %p4, %p1, %p3;
  @%p4 st.global.u32 [%rd3], %r2;
  @!%p4 st.global.u32 [%rd3], %r1;
)",
                             32);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == (t < 10 ? 2u : t));
}

}  // namespace
