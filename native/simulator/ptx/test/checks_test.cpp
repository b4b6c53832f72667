// NVIDIA_VIRTUAL_SIMULATOR_CHECK: a fault of the program is reported with its places, and a correct
// program is not.
#include <doctest/doctest.h>

#include <algorithm>

#include "native/simulator/ptx/test/images.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

/// The engine reads the variable once, at its first launch.
[[maybe_unused]] const int enabled =
    setenv("NVIDIA_VIRTUAL_SIMULATOR_CHECK", "races,memory,barriers", 1);

struct Result {
  CUresult result;
  std::string report;
  std::vector<std::uint32_t> out;
};

Result runWith(const std::string& body, const test::Shape& shape, const std::string& before = {}) {
  test::Module module(test::kernel(body, before));
  test::Buffer<std::uint32_t> out(module.memory, 1024), in(module.memory, 1024);
  const CUresult result = module.run("k", shape, out.address(), in.address());
  return {result, module.asserted, {out.data(), out.data() + 1024}};
}

/// How a report names the line of a part of the body.
std::string lineOf(const std::string& body, const std::string& part) {
  const std::string text = test::kernel(body);
  return "PTX line " +
         std::to_string(1 + std::count(text.begin(),
                                       text.begin() + static_cast<std::ptrdiff_t>(text.find(part)),
                                       '\n')) +
         " of k";
}

void reports(const Result& result, std::initializer_list<std::string> parts) {
  CAPTURE(result.report);
  for (const std::string& part : parts) {
    CAPTURE(part);
    CHECK(result.report.find(part) != std::string::npos);
  }
}

void isClean(const Result& result) {
  CHECK(result.result == CUDA_SUCCESS);
  CHECK(result.report == "");
}

const std::string kSlot = R"(
  .shared .align 16 .b8 s[4096];
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, s;
  add.u32 %r2, %r2, %r3;
)";

// Without a check it ends at a whole unit of 128 bytes.
TEST_CASE("shared memory ends at the block's last byte") {
  CHECK(runWith(".shared .b8 s[64];\nst.shared.u8 [s+64], 1;", {}).result ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(runWith(".shared .align 4 .b8 fixed[20];\nst.shared.u32 [dynamic+4], %r1;",
                {.dynamicShared = 4}, ".extern .shared .align 16 .b8 dynamic[];\n")
            .result == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("a missing barrier is a race in shared memory") {
  const std::string body = kSlot + R"(
  st.shared.u32 [%r2], %r1;
  xor.b32 %r4, %r2, 128;
  ld.shared.u32 %r5, [%r4];
  st.global.u32 [%rd3], %r5;
)";
  const Result result = runWith(body, {.block = {64, 1, 1}});
  reports(result, {"data race on shared memory at 0x", "in kernel k",
                   "thread [32,0,0] of block [0,0,0] writes at " + lineOf(body, "st.shared.u32"),
                   "reads at " + lineOf(body, "ld.shared.u32")});
  CHECK(result.result == CUDA_SUCCESS);
}

TEST_CASE("a missing warp barrier is a race") {
  const std::string body = kSlot + R"(
  st.shared.u32 [%r2], %r1;
  xor.b32 %r4, %r2, 4;
  ld.shared.u32 %r5, [%r4];
)";
  reports(runWith(body, {.block = {32, 1, 1}}),
          {"data race on shared memory", "thread [0,0,0] of block [0,0,0] reads at "});
}

TEST_CASE("writes of blocks without an order are a race") {
  const std::string body = R"(
  mov.u32 %r2, %ctaid.x;
  st.global.u32 [counter], %r2;
)";
  const std::string before = ".global .align 4 .u32 counter = 7;\n";
  reports(runWith(body, {.grid = {3, 1, 1}}, before),
          {"data race on global memory", "byte 0 of variable counter", "of block [0,0,0] writes at",
           "of block [1,0,0] writes at"});
}

/// Without a fence, the last block may read an old result.
const std::string kLastBlock = R"(
  mov.u32 %r2, %ctaid.x;
  mul.wide.u32 %rd4, %r2, 4;
  add.u64 %rd4, %rd2, %rd4;
  st.global.u32 [%rd4], 5;
  FENCE
  atom.global.add.u32 %r3, [%rd2+4000], 1;
  setp.ne.u32 %p1, %r3, 7;
  @%p1 ret;
  ld.global.u32 %r4, [%rd2+8];
  st.global.u32 [%rd1], %r4;
)";
std::string lastBlock(const std::string& fence) {
  return std::string(kLastBlock).replace(kLastBlock.find("FENCE"), 5, fence);
}

TEST_CASE("a missing fence is a race in global memory") {
  const std::string body = lastBlock("");
  reports(runWith(body, {.grid = {8, 1, 1}}),
          {"data race on global memory", "byte 8 of the 4096 bytes at",
           "of block [2,0,0] writes at " + lineOf(body, "st.global.u32 [%rd4]"),
           "of block [7,0,0] reads at " + lineOf(body, "ld.global.u32 %r4")});
}

TEST_CASE("threads that write one word race unless they write the same value") {
  reports(runWith(kSlot + "st.shared.u32 [s], %r1;", {.block = {32, 1, 1}}),
          {"data race", "thread [0,0,0]", "thread [1,0,0]"});
  isClean(runWith(kSlot + "st.shared.u32 [s], 9;", {.block = {64, 1, 1}}));
}

TEST_CASE("a wrong address is reported with its thread and line") {
  const std::string past = "st.global.u32 [%rd3+4032], %r1;";
  Result result = runWith(past, {.block = {32, 1, 1}});
  CHECK(result.result == CUDA_ERROR_ILLEGAL_ADDRESS);
  reports(result, {"access outside of an allocation",
                   "thread [16,0,0] of block [0,0,0] writes 4 bytes at " + lineOf(past, past)});
  result = runWith(kSlot + "ld.shared.u32 %r4, [%r2+4000];", {.block = {32, 1, 1}});
  CHECK(result.result == CUDA_ERROR_ILLEGAL_ADDRESS);
  reports(result, {"shared memory at 0x1000", "thread [24,0,0]", "the block has 4096 bytes of it"});
  result = runWith("ld.global.u64 %rd4, [%rd1+4];", {});
  CHECK(result.result == CUDA_ERROR_MISALIGNED_ADDRESS);
  reports(result, {"misaligned access", "no multiple of 8", "reads 8 bytes"});
  result = runWith("mov.u64 %rd4, 16;\natom.global.add.u32 %r2, [%rd4], 1;", {});
  CHECK(result.result == CUDA_ERROR_ILLEGAL_ADDRESS);
  reports(result, {"memory at 0x10"});
}

TEST_CASE("a barrier at different instructions of a warp is reported") {
  const std::string body = R"(
  setp.lt.u32 %p1, %r1, 16;
  @%p1 bra $one;
  bar.sync 0;
  mov.u32 %r4, 1;
  bra $end;
$one:
  mov.u32 %r4, 2;
  bar.sync 0;
$end:
  st.global.u32 [%rd3], %r4;
)";
  reports(runWith(body, {.block = {32, 1, 1}}),
          {"divergent barrier 0: threads of one warp are at different instructions",
           "thread [0,0,0]", "thread [16,0,0]"});
}

TEST_CASE("a wrong count of threads at a barrier is reported") {
  reports(runWith("bar.sync 1, 40;", {.block = {64, 1, 1}}),
          {"barrier 1 is given 40 threads, which is not a multiple of 32"});
  const Result tooMany = runWith("bar.sync 1, 96;", {.block = {64, 1, 1}});
  reports(tooMany, {"barrier 1 waits for 96 threads, and the block has 64",
                    "threads wait for each other for ever", "64 of 96 threads are at barrier 1"});
  CHECK(tooMany.result == CUDA_ERROR_LAUNCH_TIMEOUT);
}

TEST_CASE("a barrier that waits for threads that have ended is reported") {
  const Result result =
      runWith("setp.ge.u32 %p1, %r1, 32;\n@%p1 ret;\nbar.sync 1, 64;", {.block = {64, 1, 1}});
  reports(result,
          {"threads wait for each other for ever", "thread [0,0,0] of block [0,0,0] waits at",
           "32 of 64 threads are at barrier 1", "32 of the block's 64 threads have ended"});
}

TEST_CASE("a mask that lacks its own thread is reported") {
  reports(runWith("bar.warp.sync 0xfffe;", {.block = {16, 1, 1}}),
          {"the mask 0xfffe of a warp-wide operation lacks the thread that runs it"});
}

TEST_CASE("a report names source lines if the text has them") {
  const std::string body = R"(
	.loc	1 14 3
  st.shared.u32 [%r2], %r1;
	.loc	2 20 1, function_name $L__info_string0, inlined_at 1 15 3
  xor.b32 %r4, %r2, 128;
  ld.shared.u32 %r5, [%r4];
)";
  test::Module module(
      test::kernel(kSlot + body) +
      "	.file	1 \"/home/me/sum.cu\"\n	.file	2 \"/home/me/part.cuh\", 17, 200\n");
  test::Buffer<std::uint32_t> out(module.memory, 1024);
  module.run("k", {.block = {64, 1, 1}}, out.address(), out.address());
  reports({CUDA_SUCCESS, module.asserted, {}},
          {"writes at /home/me/sum.cu:14\n", "reads at /home/me/part.cuh:20\n"});
}

TEST_CASE("a reduction is correct") {
  isClean(runWith(kSlot + R"(
  st.shared.u32 [%r2], %r1;
  mov.u32 %r4, 128;
$half:
  bar.sync 0;
  setp.ge.u32 %p1, %r1, %r4;
  @%p1 bra $skip;
  shl.b32 %r5, %r4, 2;
  add.u32 %r5, %r5, %r2;
  ld.shared.u32 %r6, [%r5];
  ld.shared.u32 %r7, [%r2];
  add.u32 %r7, %r7, %r6;
  st.shared.u32 [%r2], %r7;
$skip:
  shr.u32 %r4, %r4, 1;
  setp.ne.u32 %p2, %r4, 0;
  @%p2 bra $half;
  bar.sync 0;
  ld.shared.u32 %r8, [s];
  st.global.u32 [%rd3], %r8;
)",
                  {.block = {256, 1, 1}}));
}

TEST_CASE("warp-synchronous code is correct") {
  isClean(runWith(kSlot + R"(
  st.shared.u32 [%r2], %r1;
  bar.warp.sync -1;
  xor.b32 %r4, %r2, 4;
  ld.shared.u32 %r5, [%r4];
  bar.warp.sync -1;
  st.shared.u32 [%r2], %r5;
  and.b32 %r6, %r1, 1;
  setp.eq.u32 %p1, %r6, 0;
  @!%p1 bra $odd;
  bar.warp.sync 0x55555555;
  xor.b32 %r4, %r2, 8;
  ld.shared.u32 %r5, [%r4];
  bra $end;
$odd:
  ld.shared.u32 %r5, [%r2];
$end:
  st.global.u32 [%rd3], %r5;
)",
                  {.block = {64, 1, 1}}));
}

TEST_CASE("the last block with a fence, and atomics, are correct") {
  isClean(runWith(lastBlock("membar.gl;"), {.grid = {8, 1, 1}}));
  isClean(runWith(R"(
  atom.global.add.u32 %r3, [%rd2], 1;
  red.global.max.u32 [%rd2+4], %r1;
)",
                  {.grid = {8, 1, 1}, .block = {64, 1, 1}}));
}

TEST_CASE("a double buffer is correct") {
  isClean(runWith(kSlot + R"(
  mov.u32 %r4, 0;
  mov.u32 %r7, 0;
$tile:
  and.b32 %r5, %r4, 1;
  shl.b32 %r5, %r5, 11;
  add.u32 %r6, %r5, %r2;
  cp.async.ca.shared.global [%r6], [%rd2], 4;
  cp.async.wait_all;
  bar.sync 0;
  xor.b32 %r6, %r6, 64;
  ld.shared.u32 %r8, [%r6];
  add.u32 %r7, %r7, %r8;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 8;
  @%p1 bra $tile;
  st.global.u32 [%rd3], %r7;
)",
                  {.block = {256, 1, 1}}));
}

const std::string kBulkCopy = kSlot + R"(
  .shared .align 8 .b8 m[8];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $begin;
  mbarrier.init.shared.b64 [m], 1;
$begin:
  bar.sync 0;
  @%p1 bra $wait;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [%rd2], 256, [m];
  mbarrier.arrive.expect_tx.shared.b64 _, [m], 256;
$wait:
)";

TEST_CASE("a bulk copy that its readers wait for is correct") {
  isClean(runWith(kBulkCopy + R"(
  mbarrier.try_wait.parity.shared.b64 %p2, [m], 0;
  @!%p2 bra $wait;
  ld.shared.u32 %r5, [%r2];
)",
                  {.block = {64, 1, 1}}));
}

TEST_CASE("a bulk copy that nobody waits for is a race at each of its bytes") {
  const std::string body = kBulkCopy + "  ld.shared.u32 %r5, [%r2];\n";
  const Result result = runWith(body, {.block = {64, 1, 1}});
  reports(result, {"data race on shared memory at 0x",
                   "thread [0,0,0] of block [0,0,0] writes at " + lineOf(body, "cp.async.bulk"),
                   "reads at " + lineOf(body, "ld.shared.u32 %r5")});
}

const std::string kBulkReduction = kSlot + R"(
  mov.u32 %r3, s;
  st.shared.u32 [%r2], 1;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $ends;
  cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r3], 256;
$ends:
)";

TEST_CASE("bulk reductions of several blocks into one place are correct") {
  isClean(runWith(kBulkReduction, {.grid = {4, 1, 1}, .block = {64, 1, 1}}));
}

TEST_CASE("a bulk reduction races with a plain access") {
  const std::string body = kBulkReduction + "  st.global.u32 [%rd3], 5;\n";
  const Result result = runWith(body, {.grid = {2, 1, 1}, .block = {64, 1, 1}});
  reports(result, {"data race on", "writes at " + lineOf(body, "cp.reduce.async.bulk"),
                   "writes at " + lineOf(body, "st.global.u32")});
}

TEST_CASE("producers and consumers with named barriers are correct") {
  isClean(runWith(kSlot + R"(
  mov.u32 %r4, 0;
  setp.ge.u32 %p1, %r1, 32;
$round:
  @%p1 bra $consumer;
  st.shared.u32 [%r2], %r4;
  bar.arrive 1, 64;
  bar.sync 2, 64;
  bra $next;
$consumer:
  bar.sync 1, 64;
  ld.shared.u32 %r5, [%r2+-128];
  bar.arrive 2, 64;
$next:
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p2, %r4, 10;
  @%p2 bra $round;
)",
                  {.block = {64, 1, 1}}));
}

TEST_CASE("a message between blocks is correct") {
  isClean(runWith(R"(
  mov.u32 %r2, %ctaid.x;
  setp.eq.u32 %p1, %r2, 1;
  @%p1 bra $reader;
  st.global.v4.u32 [%rd2], {1, 2, 3, 4};
  st.release.gpu.global.u32 [%rd2+64], 1;
  ret;
$reader:
  ld.acquire.gpu.global.u32 %r3, [%rd2+64];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra $reader;
  ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];
)",
                  {.grid = {2, 1, 1}}));
}

TEST_CASE("a lock is correct") {
  isClean(runWith(R"(
$try:
  atom.acquire.gpu.global.cas.b32 %r2, [%rd2], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra $try;
  ld.global.u32 %r3, [%rd2+4];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd2+4], %r3;
  atom.release.gpu.global.exch.b32 %r2, [%rd2], 0;
)",
                  {.grid = {3, 1, 1}, .block = {4, 1, 1}}));
}

TEST_CASE("an mbarrier is correct") {
  isClean(runWith(kSlot + R"(
  setp.eq.u32 %p1, %r1, 0;
  @%p1 mbarrier.init.shared.b64 [s], 64;
  bar.sync 0;
  st.shared.u32 [%r2+64], %r1;
  mbarrier.arrive.shared.b64 %rd4, [s];
$wait:
  mbarrier.test_wait.shared.b64 %p2, [s], %rd4;
  @!%p2 bra $wait;
  xor.b32 %r4, %r1, 32;
  shl.b32 %r4, %r4, 2;
  add.u32 %r4, %r4, %r3;
  ld.shared.u32 %r5, [%r4+64];
)",
                  {.block = {64, 1, 1}}));
}

TEST_CASE("a wrong handle and a surface's edge are reported, reads of textures are clean") {
  const std::string read =
      "mov.u64 %rd4, 77;\n"
      "tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd4, {%r1}];\n"
      "st.global.f32 [%rd3], %f1;";
  const std::string wrong =
      "mov.u64 %rd4, 78;\nmov.u32 %r2, 0;\n"
      "suld.b.1d.b32.trap %r3, [%rd4, {%r2}];";
  const std::string beyond =
      "mov.u64 %rd4, 77;\nmov.u32 %r2, 64;\n"
      "sust.b.1d.b32.trap [%rd4, {%r2}], %r1;";
  const auto run = [](const std::string& body) {
    test::Module module(test::kernel(body));
    test::Volume volume(module, simulator::ImageShape::d1);
    module.images.textures[test::kHandle] = {volume.image, {}};
    module.images.surfaces[test::kHandle] = volume.image;
    test::Buffer<std::uint32_t> out(module.memory, 64);
    const CUresult result = module.run("k", {.block = {16, 1, 1}}, out.address(), out.address());
    return Result{result, module.asserted, {}};
  };
  isClean(run(read));
  reports(run(wrong), {"0x4e names no surface", "at " + lineOf(wrong, "suld.b")});
  reports(run(beyond), {"(64, 0, 0) in a surface of 16 x 1 x 1 elements of 4 bytes"});
}

}  // namespace
