// Function calls: arguments in memory, recursion, pointers, linking of several modules.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

const std::string kFunctions = R"(
.func (.param .b32 result) fibonacci(.param .b32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  ld.param.u32 %r1, [n];
  setp.lt.u32 %p1, %r1, 2;
  @%p1 bra $small;
  { .param .b32 a; .param .b32 b;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call.uni (b), fibonacci, (a);
    ld.param.b32 %r3, [b]; }
  { .param .b32 a; .param .b32 b;
    sub.u32 %r2, %r1, 2;
    st.param.b32 [a], %r2;
    call.uni (b), fibonacci, (a);
    ld.param.b32 %r4, [b]; }
  add.u32 %r5, %r3, %r4;
  st.param.b32 [result], %r5;
  ret;
$small:
  st.param.b32 [result], %r1;
  ret;
}
.func (.param .align 8 .b8 result[16]) swapped(.param .align 8 .b8 pair[16])
{
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [pair];
  ld.param.u64 %rd2, [pair+8];
  st.param.v2.u64 [result], {%rd2, %rd1};
  ret;
}
.func (.param .b32 result) twice(.param .b32 n)
{
  .reg .b32 %r<3>;
  ld.param.u32 %r1, [n];
  shl.b32 %r2, %r1, 1;
  st.param.b32 [result], %r2;
  ret;
}
.global .align 8 .u64 table[2] = {fibonacci, twice};
)";

TEST_CASE("functions call themselves") {
  test::Module module(test::kernel(R"(
  .param .b32 a; .param .b32 b;
  rem.u32 %r2, %r1, 11;
  st.param.b32 [a], %r2;
  call (b), fibonacci, (a);
  ld.param.b32 %r3, [b];
  st.global.u32 [%rd3], %r3;
)",
                                   kFunctions));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.block = {64, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  const std::uint32_t expected[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
  for (std::uint32_t t = 0; t < 64; ++t) CHECK(out[t] == expected[t % 11]);
  // ptxas reports the frames that it knows. The room for recursion is not memory of a kernel.
  const auto kernels = module.program->kernels();
  CHECK(kernels[0].localBytes < 256);
  CHECK(kernels[0].stackBytes > 60'000);
}

TEST_CASE("endless recursion is a fault") {
  test::Module module(test::kernel(R"(
  .param .b32 a; .param .b32 b;
  st.param.b32 [a], 5;
  call (b), endless, (a);
)",
                                   R"(
.func (.param .b32 r) endless(.param .b32 n) { .param .b32 a; .param .b32 b;
.local .b8 space[64]; st.param.b32 [a], 1; call (b), endless, (a); ret; }
)"));
  test::Buffer<std::uint32_t> out(module.memory, 64);
  CHECK(module.run("k", {.block = {64, 1, 1}}, out.address(), out.address()) ==
        CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_CASE("structures are passed and returned") {
  test::Module module(test::kernel(R"(
  .param .align 8 .b8 a[16]; .param .align 8 .b8 b[16];
  cvt.u64.u32 %rd4, %r1;
  st.param.u64 [a], %rd4;
  st.param.u64 [a+8], 77;
  call (b), swapped, (a);
  ld.param.v2.u64 {%rd5, %rd6}, [b];
  mad.lo.s64 %rd5, %rd5, 1000, %rd6;
  st.global.u32 [%rd3], %rd5;
)",
                                   kFunctions));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == 77000 + t);
}

// As nvlink 13.0 links them. Values not recorded.
TEST_CASE("modules share an exported variable in shared memory") {
  const std::string user = test::kernel(R"(
  .param .b32 a; .param .b32 b;
  st.shared.u32 [x+4], 40;
  call fill, ();
  ld.shared.u32 %r2, [x];
  ld.shared.u32 %r3, [x+4];
  mad.lo.u32 %r2, %r2, 100, %r3;
  st.global.u32 [%rd3], %r2;
)",
                                        ".extern .func fill();\n.extern .shared .u32 x[2];\n");
  const auto filler = [](const std::string& linkage) {
    return test::kHeader + linkage + R"( .shared .align 4 .u32 x[2];
.visible .func fill() { .reg .u32 %r; ld.shared.u32 %r, [x+4]; add.u32 %r, %r, 2;
st.shared.u32 [x+4], %r; st.shared.u32 [x], 7; ret; }
)";
  };
  const std::string weak = test::kHeader + ".weak .shared .align 4 .u32 x[2];\n";
  const std::vector<std::vector<std::string>> links = {{user, filler(".visible")},
                                                       {filler(".visible"), user},
                                                       {weak, user, filler(".weak")},
                                                       {weak, filler(".visible"), user}};
  for (const std::vector<std::string>& texts : links) {
    test::Module module(texts);
    test::Buffer<std::uint32_t> out(module.memory, 1);
    CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
    CHECK(out[0] == 742u);
  }
  CHECK(!test::Module(std::vector{user, filler("")}).program);
  const std::string again = test::kHeader + ".visible .shared .align 4 .u32 x[2];\n";
  CHECK(!test::Module(std::vector{user, filler(".visible"), again}).program);
}

// GCC declares the arguments of a call so. Values not recorded.
TEST_CASE("variables of a function are declared in ranges") {
  const std::string body = R"(
  .shared .u32 s<2>;
  { .param .b32 result; .param .align 8 .b32 %p<3>;
    st.param.b32 [%p0], %r1;
    st.param.b32 [%p2], 100;
    st.param.b32 [%p1], 10;
    call (result), joined, (%p0, %p1, %p2);
    ld.param.b32 %r2, [result]; }
  st.shared.u32 [s1], 5000;
  st.shared.u32 [s0], 1000;
  ld.shared.u32 %r3, [s1];
  add.u32 %r2, %r2, %r3;
  st.global.u32 [%rd3], %r2;
)";
  test::Module module(test::kernel(body, R"(
.func (.param .b32 r) joined(.param .b32 a, .param .b32 b, .param .b32 c)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r0, [a]; ld.param.b32 %r1, [b]; ld.param.b32 %r2, [c];
  mad.lo.u32 %r3, %r0, %r1, %r2;
  st.param.b32 [r], %r3;
  ret;
}
)"));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == 5100 + 10 * t);
  for (const char* wrong : {".local .b32 v<2>[3];", ".local .b32 v<2> = 1;", ".local .b32 v<-1>;",
                            ".local .b32 v<4097>;", ".local .b32 v<2>; st.local.b32 [v2], 1;"}) {
    CAPTURE(wrong);
    CHECK(!test::Module(test::kernel(wrong)).program);
  }
}

TEST_CASE("functions are called by pointer") {
  test::Module module(test::kernel(R"(
  .param .b32 a; .param .b32 b;
  and.b32 %r2, %r1, 1;
  mul.wide.u32 %rd4, %r2, 8;
  mov.u64 %rd5, table;
  add.u64 %rd5, %rd5, %rd4;
  ld.global.u64 %rd6, [%rd5];
  st.param.b32 [a], 10;
  proto: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (b), %rd6, (a), proto;
  ld.param.b32 %r3, [b];
  mov.u64 %rd7, twice;
  setp.eq.u64 %p1, %rd6, %rd7;
  @%p1 add.u32 %r3, %r3, 1000;
  st.global.u32 [%rd3], %r3;
)",
                                   kFunctions));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == (t % 2 ? 1020u : 55u));
  const test::Module null(test::kernel(""));
  test::Module bad(
      test::kernel("mov.u64 %rd4, 4096;\nproto: .callprototype _ ();\ncall %rd4, (), proto;"));
  CHECK(bad.run("k", {}, out.address(), out.address()) == CUDA_ERROR_INVALID_PC);
}

TEST_CASE("modules are linked by their names") {
  const std::string one = test::kernel(
      R"(
  .param .b32 a; .param .b32 b;
  st.param.b32 [a], %r1;
  call (b), elsewhere, (a);
  ld.param.b32 %r3, [b];
  ld.global.u32 %r4, [counter];
  add.u32 %r3, %r3, %r4;
  st.global.u32 [%rd3], %r3;
)",
      ".extern .func (.param .b32 r) elsewhere(.param .b32 n);\n.extern .global .align 4 .u32 "
      "counter;\n.global .align 4 .u32 own = 5;\n");
  const std::string two = test::kHeader + R"(
.visible .global .align 4 .u32 counter = 100;
.global .align 4 .u32 own = 7;
.visible .func (.param .b32 r) elsewhere(.param .b32 n)
{
  .reg .b32 %r<4>;
  ld.param.u32 %r1, [n];
  ld.global.u32 %r2, [own];
  mul.lo.u32 %r3, %r1, %r2;
  st.param.b32 [r], %r3;
  ret;
}
)";
  test::Module module(std::vector<std::string>{one, two});
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == 100 + 7 * t);
  const test::Module missing(std::vector<std::string>{one});
  CHECK(!missing.program);
  CHECK(missing.error.sentence.find("undefined reference to 'elsewhere'") != std::string::npos);
}

}  // namespace
