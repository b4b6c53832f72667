// printf, assert and malloc of the device.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

std::string bytesOf(const std::string& name, const std::string& text) {
  std::string result =
      ".global .align 1 .b8 " + name + "[" + std::to_string(text.size() + 1) + "] = {";
  for (const char c : text) result += std::to_string(static_cast<int>(c)) + ", ";
  return result + "0};\n";
}

const std::string kPrint = R"(
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d,
.param .b64 e);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
)";

TEST_CASE("printf formats its arguments") {
  test::Module module(test::kernel(
      R"(
  .local .align 8 .b8 arguments[64];
  .param .b64 f; .param .b64 a; .param .b32 r;
  mov.u64 %rd4, arguments;
  st.local.u32 [%rd4], -5;
  st.local.f64 [%rd4+8], 0d4009200000000000;
  mov.u64 %rd5, name;
  st.local.u64 [%rd4+16], %rd5;
  st.local.u64 [%rd4+24], -1;
  st.local.u32 [%rd4+32], 6;
  st.local.u32 [%rd4+36], 65;
  st.local.u64 [%rd4+40], 0xabc;
  cvta.local.u64 %rd6, %rd4;
  mov.u64 %rd7, format;
  st.param.b64 [f], %rd7;
  st.param.b64 [a], %rd6;
  call (r), vprintf, (f, a);
  ld.param.b32 %r2, [r];
  st.global.u32 [%rd1], %r2;
)",
      kPrint + bytesOf("format", "%04d|%.3f|%-6s|%llu|%*c|%p|%%\n") + bytesOf("name", "abc")));
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(module.printed == "-005|3.141|abc   |18446744073709551615|     A|0xabc|%\n");
  CHECK(out[0] == 7u);
}

// Whatever thread ran them.
TEST_CASE("blocks print in the order of the grid") {
  test::Module module(test::kernel(R"(
  .local .align 8 .b8 arguments[8];
  .param .b64 f; .param .b64 a; .param .b32 r;
  mov.u64 %rd4, arguments;
  mov.u32 %r2, %ctaid.x;
  st.local.v2.u32 [%rd4], {%r2, %r1};
  cvta.local.u64 %rd6, %rd4;
  mov.u64 %rd7, format;
  st.param.b64 [f], %rd7;
  st.param.b64 [a], %rd6;
  call (r), vprintf, (f, a);
)",
                                   kPrint + bytesOf("format", "%d.%d ")));
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {.grid = {20, 1, 1}, .block = {3, 1, 1}}, out.address(), out.address()) ==
        CUDA_SUCCESS);
  std::string expected;
  for (int block = 0; block < 20; ++block) {
    for (int thread = 0; thread < 3; ++thread)
      expected += std::to_string(block) + "." + std::to_string(thread) + " ";
  }
  CHECK(module.printed == expected);
}

TEST_CASE("a failed assertion is printed and ends the launch") {
  test::Module module(test::kernel(R"(
  .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
  setp.ne.u32 %p1, %r1, 2;
  @%p1 ret;
  mov.u64 %rd4, expression;
  mov.u64 %rd5, file;
  mov.u64 %rd6, function;
  st.param.b64 [a], %rd4;
  st.param.b64 [b], %rd5;
  st.param.b32 [c], 12;
  st.param.b64 [d], %rd6;
  st.param.b64 [e], 1;
  call __assertfail, (a, b, c, d, e);
)",
                                   kPrint + bytesOf("expression", "n < 5") +
                                       bytesOf("file", "x.cu") +
                                       bytesOf("function", "void k(int)")));
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {.block = {4, 1, 1}}, out.address(), out.address()) == CUDA_ERROR_ASSERT);
  CHECK(module.asserted ==
        "x.cu:12: void k(int): block: [0,0,0], thread: [2,0,0] Assertion `n < 5` failed.\n");
}

TEST_CASE("each thread allocates memory of its own") {
  test::Module module(test::kernel(R"(
  .param .b64 n; .param .b64 p;
  st.param.b64 [n], 64;
  call (p), malloc, (n);
  ld.param.b64 %rd4, [p];
  st.u32 [%rd4+60], %r1;
  ld.global.u32 %r2, [%rd4+60];
  st.global.u32 [%rd3], %r2;
  st.param.b64 [n], %rd4;
  call free, (n);
)",
                                   kPrint));
  test::Buffer<std::uint32_t> out(module.memory, 32);
  CHECK(module.run("k", {.block = {32, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::uint32_t t = 0; t < 32; ++t) CHECK(out[t] == t);
}

}  // namespace
