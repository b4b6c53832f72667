// State spaces, generic addresses, vectors, variables, and wrong addresses.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

CUresult resultOf(const std::string& body, const test::Shape& shape = {.block = {32, 1, 1}}) {
  test::Module module(test::kernel(body));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  return module.run("k", shape, out.address(), out.address());
}

TEST_CASE("a wrong address or trap is a fault") {
  CHECK(resultOf("st.global.u32 [%rd1+255], 1;") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("st.global.u32 [%rd1+256], 1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("st.global.v2.u32 [%rd1+252], {%r1, %r1};") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("ld.global.u32 %r2, [%rd1-4];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("mov.u64 %rd4, 0;\nld.u32 %r2, [%rd4];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("mov.u64 %rd4, -4;\nld.global.u32 %r2, [%rd4];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(".shared .b8 s[64];\nst.shared.u8 [s+128], 1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(".local .b8 l[64];\nmov.u64 %rd4, l;\nst.local.u8 [%rd4+4096], 1;") ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("setp.eq.u32 %p1, %r1, 31;\n@%p1 st.global.u32 [%rd1+256], 1;") ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("setp.eq.u32 %p1, %r1, 32;\n@%p1 st.global.u32 [%rd1+256], 1;") == CUDA_SUCCESS);
  CHECK(resultOf("atom.global.add.u32 %r2, [%rd1+2], 1;") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("trap;") == CUDA_ERROR_LAUNCH_FAILED);
}

// Libraries have such code for GPUs that support it, beside other code.
TEST_CASE("an instruction for multicast memory compiles, and finds none") {
  const std::string instruction = "multimem.ld_reduce.acquire.sys.global.min.u64 %rd4, [%rd1];";
  CHECK(resultOf("setp.eq.u32 %p1, %r1, 99;\n@%p1 " + instruction) == CUDA_SUCCESS);
  CHECK(resultOf(instruction) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("multimem.st.relaxed.sys.global.v4.f32 [%rd1], {%f1, %f2, %f3, %f4};") ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("multimem.red.relaxed.sys.add.u32 [%rd1], %r1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("each width is loaded, extended and stored") {
  test::Module module(test::kernel(R"(
  ld.global.s8 %r2, [%rd2];
  ld.global.u8 %h1, [%rd2];
  ld.global.s16 %rd4, [%rd2];
  ld.global.v4.u8 {%r3, %r4, %r5, %r6}, [%rd2];
  cvt.u32.u16 %r7, %h1;
  cvt.u32.u64 %r8, %rd4;
  st.global.v4.u32 [%rd1], {%r2, %r7, %r8, %r3};
  st.global.v4.u32 [%rd1+16], {%r4, %r5, %r6, -1};
  st.global.u8 [%rd1+32], %r2;
  st.global.v2.u16 [%rd1+36], {%h1, 7};
  st.global.v2.f64 [%rd1+48], {0d3FF0000000000000, 0d4000000000000000};
)"));
  test::Buffer<std::uint32_t> out(module.memory, 16);
  test::Buffer<std::uint8_t> in(module.memory, std::vector<std::uint8_t>{0xfe, 0x81, 3, 4});
  CHECK(module.run("k", {}, out.address(), in.address()) == CUDA_SUCCESS);
  const std::uint32_t expected[] = {0xfffffffe, 0xfe,       0xffff81fe, 0xfe,       0x81, 3,
                                    4,          0xffffffff, 0xfe,       0x000700fe, 0,    0,
                                    0,          0x3ff00000, 0,          0x40000000};
  for (std::size_t i = 0; i < 16; ++i) CHECK(out[i] == expected[i]);
}

TEST_CASE("a generic address leads to its state space") {
  test::Module module(test::kernel(R"(
  .shared .align 8 .b8 s[128];
  .local .align 8 .b8 l[16];
  mov.u64 %rd4, s;
  cvta.shared.u64 %rd4, %rd4;
  mul.wide.u32 %rd5, %r1, 4;
  add.u64 %rd4, %rd4, %rd5;
  mov.u64 %rd6, l;
  cvta.local.u64 %rd6, %rd6;
  rem.u32 %r2, %r1, 3;
  setp.eq.u32 %p1, %r2, 1;
  setp.eq.u32 %p2, %r2, 2;
  mov.u64 %rd7, %rd3;
  @%p1 mov.u64 %rd7, %rd4;
  @%p2 mov.u64 %rd7, %rd6;
  st.u32 [%rd7], %r1;
  ld.u32 %r3, [%rd7];
  isspacep.shared %p3, %rd7;
  isspacep.local %p4, %rd7;
  isspacep.global %p5, %rd7;
  @%p3 add.u32 %r3, %r3, 100;
  @%p4 add.u32 %r3, %r3, 200;
  @%p5 add.u32 %r3, %r3, 300;
  cvta.to.shared.u64 %rd8, %rd4;
  ld.shared.u32 %r4, [%rd8];
  @%p3 add.u32 %r3, %r3, %r4;
  st.global.u32 [%rd3], %r3;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t)
    CHECK(out[t] == (t % 3 == 0 ? t + 300 : t % 3 == 1 ? 2 * t + 100 : t + 200));
}

TEST_CASE("variables have their initial values") {
  test::Module module(test::kernel(R"(
  ld.const.u32 %r2, [numbers+8];
  ld.global.u64 %rd4, [pointer];
  ld.global.u8 %r3, [%rd4+1];
  mov.u64 %rd5, real;
  ld.global.f64 %d1, [%rd5];
  cvt.rzi.u32.f64 %r4, %d1;
  ld.global.u16 %r5, [halves+2];
  st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
)",
                                   R"(
.const .align 4 .u32 numbers[4] = {1, 2, 0x30, -4};
.global .align 1 .b8 text[4] = {65, 66, 67};
.global .align 8 .u64 pointer = generic(text)+1;
.visible .global .align 8 .f64 real = 0d4045000000000000;
.global .align 2 .u16 halves[3] = {1, 0xffff};
)"));
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 0x30u);
  CHECK(out[1] == 67u);
  CHECK(out[2] == 42u);
  CHECK(out[3] == 0xffffu);
}

TEST_CASE("dynamic shared memory follows the static") {
  test::Module module(test::kernel(R"(
  .shared .align 4 .b8 fixed[20];
  mov.u32 %r2, dynamic;
  mov.u32 %r3, fixed;
  mov.u32 %r4, %dynamic_smem_size;
  mov.u32 %r5, %total_smem_size;
  st.shared.u32 [dynamic+4], %r1;
  ld.shared.u32 %r6, [%r2+4];
  sub.u32 %r2, %r2, %r3;
  st.global.v4.u32 [%rd1], {%r2, %r4, %r5, %r6};
)",
                                   ".extern .shared .align 16 .b8 dynamic[];\n"));
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {.dynamicShared = 64}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 32u);
  CHECK(out[1] == 64u);
  CHECK(out[2] == 96u);
  CHECK(out[3] == 0u);
}

// LLVM declares shared arrays so.
TEST_CASE("an extern variable that has a size and no definition is a definition") {
  const std::string text = test::kernel(R"(
  mov.u32 %r2, table;
  mov.u32 %r3, words;
  mov.u32 %r4, dynamic;
  st.shared.u32 [words+12], %r1;
  ld.shared.u32 %r5, [words+12];
  ld.global.u32 %r6, [total];
  add.u32 %r5, %r5, %r6;
  sub.u32 %r3, %r3, %r2;
  sub.u32 %r4, %r4, %r2;
  st.global.v4.u32 [%rd1], {%r2, %r3, %r4, %r5};
)",
                                        ".extern .shared .align 8 .b8 table[260];\n"
                                        ".extern .shared .align 16 .b8 words[16];\n"
                                        ".extern .shared .align 16 .b8 dynamic[];\n"
                                        ".extern .global .align 4 .u32 total;\n"
                                        ".extern .global .align 4 .u32 defined;\n"
                                        ".visible .global .align 4 .u32 defined = 5;\n");
  test::Module module(text);
  CHECK(module.program->variables().size() == 2);
  CHECK(module.program->kernels()[0].staticSharedBytes == 288);
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 0u);
  CHECK(out[1] == 272u);
  CHECK(out[2] == 288u);
  CHECK(out[3] == 0u);
  simulator::CompileError error;
  const std::string_view view = text;
  CHECK(!simulator::compile({&view, 1}, error, simulator::Externs::refuse));
  CHECK(error.sentence.find("undefined reference to 'table'") != std::string::npos);
}

// Compilers write such addresses: the sum of a 32-bit register and an offset has 32 bits.
TEST_CASE("a shared address that counts from below zero wraps at 32 bits") {
  test::Module module(test::kernel(R"(
  .shared .align 16 .b8 s[256];
  mov.u32 %r2, s;
  shl.b32 %r3, %r1, 2;
  add.s32 %r2, %r2, %r3;
  sub.s32 %r2, %r2, 160;
  add.s32 %r4, %r1, 7;
  st.shared.u32 [%r2+160], %r4;
  atom.shared.add.u32 %r5, [%r2+160], 100;
  ld.shared.u32 %r6, [%r2+160];
  st.global.u32 [%rd3], %r6;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (unsigned i = 0; i < 32; ++i) CHECK(out[i] == i + 107);
  CHECK(resultOf(".shared .align 4 .b8 s[8];\n mov.u32 %r2, s;\n sub.s32 %r2, %r2, 8;\n "
                 "st.shared.u32 [%r2+4], 1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
}

/// Places that the lanes of a warp touch: one, neighbours, rows of tiles, and nearly these.
std::vector<std::vector<std::uint32_t>> patterns() {
  std::vector<std::vector<std::uint32_t>> result(7, std::vector<std::uint32_t>(32));
  for (std::uint32_t i = 0; i < 32; ++i) {
    result[0][i] = 5;                     // one place
    result[1][i] = i;                     // neighbours
    result[2][i] = i / 16 * 40 + i % 16;  // two rows
    result[3][i] = i / 16 * 3;            // a place for each row
    result[4][i] = i % 16;                // one row twice
    result[5][i] = 31 - i;
    result[6][i] = i * 2;
  }
  for (const std::size_t regular : {0, 1, 2}) {
    for (const std::size_t lane : {1, 15, 16, 17, 31}) {
      result.push_back(result[regular]);
      result.back()[lane] = 60;
    }
  }
  return result;
}

/// Loads what `type` is at the places of the lanes, and stores it at the same places of shared
/// memory, from where the lane loads it again. Only lanes below %r7 do.
std::string copyThrough(const std::string& type, const std::string& bytes,
                        const std::string& value) {
  return ".shared .align 16 .b8 s[1024];\n mov.u32 %r2, s;\n"
         "ld.global.u32 %r7, [%rd2];\n setp.ge.u32 %p1, %r1, %r7;\n @%p1 ret;\n"
         "mul.wide.u32 %rd4, %r1, 4;\n add.u64 %rd4, %rd2, %rd4;\n"
         "ld.global.u32 %r3, [%rd4+64];\n mul.lo.u32 %r3, %r3, " +
         bytes +
         ";\n"
         "add.u32 %r2, %r2, %r3;\n cvt.u64.u32 %rd5, %r3;\n add.u64 %rd5, %rd2, %rd5;\n"
         "ld.global." +
         type + " " + value +
         ", [%rd5+192];\n"
         "st.shared." +
         type + " [%r2], " + value +
         ";\n"
         "ld.shared." +
         type +
         " %rd6, [%r2];\n"
         "mul.wide.u32 %rd4, %r1, 8;\n add.u64 %rd4, %rd1, %rd4;\n st.global.u64 [%rd4], %rd6;\n";
}

template <class T>
void checkPatterns(const std::string& type, const std::string& value) {
  test::Module module(test::kernel(copyThrough(type, std::to_string(sizeof(T)), value)));
  constexpr std::size_t kData = 192;
  for (const std::uint32_t lanes : {32u, 31u, 17u, 1u}) {
    for (const auto& places : patterns()) {
      std::vector<std::uint8_t> bytes(kData + 64 * sizeof(T));
      for (std::size_t i = kData; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(i * 151 + 77);
      std::memcpy(bytes.data(), &lanes, sizeof lanes);
      std::memcpy(bytes.data() + 64, places.data(), 128);
      test::Buffer<std::uint64_t> out(module.memory, 32);
      test::Buffer<std::uint8_t> in(module.memory, bytes);
      REQUIRE(module.run("k", {.block = {32, 1, 1}}, out.address(), in.address()) == CUDA_SUCCESS);
      for (std::size_t i = 0; i < lanes; ++i) {
        T expected;
        std::memcpy(&expected, bytes.data() + kData + places[i] * sizeof(T), sizeof expected);
        CHECK(out[i] == static_cast<std::uint64_t>(expected));
      }
    }
  }
}

TEST_CASE("lanes of every width load and store at regular and irregular places") {
  checkPatterns<std::uint8_t>("u8", "%r8");
  checkPatterns<std::int8_t>("s8", "%r8");
  checkPatterns<std::uint16_t>("u16", "%h1");
  checkPatterns<std::int16_t>("s16", "%r8");
  checkPatterns<std::uint32_t>("u32", "%r8");
  checkPatterns<std::int32_t>("s32", "%r8");
  checkPatterns<std::uint64_t>("u64", "%rd7");
}

TEST_CASE("a regular access faults as any other") {
  const std::string index = "mul.wide.u32 %rd4, %r1, 4;\n add.u64 %rd4, %rd1, %rd4;\n";
  CHECK(resultOf(index + "ld.global.u32 %r2, [%rd4+128];") == CUDA_SUCCESS);
  CHECK(resultOf(index + "ld.global.u32 %r2, [%rd4+132];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(index + "st.global.u32 [%rd4+132], %r1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(index + "ld.global.u32 %r2, [%rd4+2];") == CUDA_ERROR_MISALIGNED_ADDRESS);
  CHECK(resultOf("ld.global.u32 %r2, [%rd1+256];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string shared =
      ".shared .align 16 .b8 s[128];\n mov.u32 %r2, s;\n"
      "shl.b32 %r3, %r1, 2;\n add.u32 %r2, %r2, %r3;\n";
  CHECK(resultOf(shared + "ld.shared.u32 %r4, [%r2];") == CUDA_SUCCESS);
  CHECK(resultOf(shared + "ld.shared.u32 %r4, [%r2+4];") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(shared + "st.shared.u32 [%r2+4], %r1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf(shared + "ld.shared.u32 %r4, [%r2+1];") == CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_CASE("shared memory ends at a whole unit of 128 bytes") {
  const std::string last = ".shared .align 4 .b8 s[4];\n mov.u32 %r2, s;\n";
  CHECK(resultOf(last + "st.shared.u32 [%r2+124], %r1;") == CUDA_SUCCESS);
  CHECK(resultOf(last + "st.shared.u32 [%r2+128], %r1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(resultOf("mov.u32 %r2, 0;\n st.shared.u32 [%r2], %r1;") == CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("each thread of a block finds its own coordinates") {
  test::Module module(test::kernel(R"(
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mad.lo.u32 %r4, %r3, 3, %r2;
  mad.lo.u32 %r4, %r4, 5, %r1;
  mul.wide.u32 %rd4, %r4, 16;
  add.u64 %rd4, %rd1, %rd4;
  mov.u32 %r5, %warpid;
  st.global.v4.u32 [%rd4], {%r1, %r2, %r3, %r5};
)"));
  test::Buffer<std::uint32_t> out(module.memory, 60 * 4);
  CHECK(module.run("k", {.block = {5, 3, 4}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t i = 0; i < 60; ++i) {
    CHECK(out[i * 4] == i % 5);
    CHECK(out[i * 4 + 1] == i / 5 % 3);
    CHECK(out[i * 4 + 2] == i / 15);
    CHECK(out[i * 4 + 3] == i / 32);
  }
}

TEST_CASE("special registers tell the position of a thread") {
  test::Module module(test::kernel(R"(
  mov.u32 %r2, %tid.y;
  mov.u32 %r3, %tid.z;
  mov.u32 %r4, %ctaid.y;
  mov.u32 %r5, %ctaid.z;
  mov.u32 %r6, %nctaid.z;
  mov.u32 %r7, %laneid;
  mov.u32 %r8, %lanemask_lt;
  mov.u32 %r9, %warpid;
  setp.eq.u32 %p1, %r1, 1;
  setp.eq.and.u32 %p1, %r2, 2, %p1;
  setp.eq.and.u32 %p1, %r3, 3, %p1;
  setp.eq.and.u32 %p1, %r4, 1, %p1;
  setp.eq.and.u32 %p1, %r5, 4, %p1;
  @!%p1 ret;
  st.global.v4.u32 [%rd1], {%r6, %r7, %r8, %r9};
)"));
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {.grid = {1, 2, 5}, .block = {4, 3, 4}}, out.address(), out.address()) ==
        CUDA_SUCCESS);
  CHECK(out[0] == 5u);
  CHECK(out[1] == (1u + 2 * 4 + 3 * 12) % 32);
  CHECK(out[2] == (1u << ((1u + 2 * 4 + 3 * 12) % 32)) - 1);
  CHECK(out[3] == 1u);
}

}  // namespace
