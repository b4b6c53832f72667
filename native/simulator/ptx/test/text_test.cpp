// Texts that do not compile, with their error messages, and forms that concern the parser only.
#include <doctest/doctest.h>

#include <cstring>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

void refused(const std::string& body, const std::string& sentence) {
  const test::Module module(test::kernel(body));
  CHECK(!module.program);
  CHECK(module.error.sentence == sentence);
}

TEST_CASE("the error message names the line and the instruction") {
  const std::string line = "ptx line 18: ";
  refused("wmma.load.a.sync.aligned.row.m8n8k64.global.b1 {%r1}, [%rd1];",
          line +
              "instruction 'wmma.load.a.sync.aligned.row.m8n8k64.global.b1' is not implemented by "
              "the simulated GPU");
  refused("tex.2dms.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r3}];",
          line + "instruction 'tex.2dms.v4.f32.s32' is not implemented by the simulated GPU");
  for (const char* bulk :
       {"cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r1}], [%r2]",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd1, {%r1}], [%r2]",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%r2], [%rd1], 16, [%r3], %h1"}) {
    const std::string text = bulk, name = text.substr(0, text.find(' '));
    refused(text + ";",
            line + "instruction '" + name + "' is not implemented by the simulated GPU");
  }
  refused("add.u32.wrong %r1, %r2, %r3;",
          line + "instruction 'add.u32.wrong' is not implemented by the simulated GPU");
  refused("add.u32 %r1, %r2, %rd3;",
          line + "instruction 'add.u32': register '%rd3' has the wrong size");
  refused("add.u32 %r1, %r2;", line + "instruction 'add.u32': an operand is missing");
  refused("bra nowhere;", line + "unknown label 'nowhere'");
  refused("mov.u64 %rd4, nothing;", line + "undefined reference to 'nothing'");
  refused("call nothing, ();", line + "undefined reference to 'nothing'");
  refused("add.u32 %r1, %r2, #;", line + "unexpected character '#'");
}

std::string repeated(std::size_t times, std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

/// As deep as the stack of a thread does not reach.
TEST_CASE("deeply nested text gives an error message") {
  constexpr std::size_t kDeep = 1'000'000;
  const std::string deeper = "nested deeper than 32 levels";
  for (const char* open : {"!", "(", "{", "[", "{_|{"})
    refused("add.u32 %r1, " + repeated(kDeep, open) + "%r2;", "ptx line 18: " + deeper);
  for (const char* sign : {"-", "~"})
    refused("add.u32 %r1, %r2, " + repeated(kDeep, sign) + "1;", "ptx line 18: " + deeper);
  for (const char* open : {"{", "generic("}) {
    const test::Module module(test::kHeader +
                              ".global .align 8 .u64 x[2] = " + repeated(kDeep, open) + "x;\n");
    CHECK(!module.program);
    CHECK(module.error.sentence.ends_with(deeper));
  }
}

TEST_CASE("elements of arrays are operands") {
  test::Module module(test::kernel(R"(
  .shared .align 8 .b64 pairs[8];
  mov.u64 %rd4, pairs[0];
  mov.u64 %rd5, pairs[3];
  sub.u64 %rd6, %rd5, %rd4;
  ld.global.u32 %r2, words[2];
  st.shared.u32 pairs[1], %r2;
  ld.shared.u32 %r3, [pairs+8];
  cvt.u32.u64 %r4, %rd6;
  mad.lo.u32 %r4, %r3, 100, %r4;
  st.global.u32 [%rd3], %r4;
)",
                                   ".global .u32 words[3] = {5, 6, 7};\n"));
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 724u);
  test::Module indexed(test::kernel(R"(
  .local .align 4 .b32 own[4];
  mov.u32 %r2, 1;
  cvt.u64.u32 %rd4, %r2;
  ld.global.u32 %r3, words[%r2];
  ld.global.u32 %r4, [words[%rd4 + 1]];
  st.local.u32 own[%r2 + 2], %r4;
  ld.local.u32 %r5, [own+12];
  mad.lo.u32 %r6, %r3, 100, %r5;
  st.global.u32 [%rd3], %r6;
)",
                                    ".global .u32 words[3] = {5, 6, 7};\n"));
  test::Buffer<std::uint32_t> found(indexed.memory, 1);
  CHECK(indexed.run("k", {.block = {1, 1, 1}}, found.address(), found.address()) == CUDA_SUCCESS);
  CHECK(found[0] == 607u);
  refused("mov.u64 %rd4, nothing[1];", "ptx line 18: 'nothing' is not an array");
}

/// The values are those of ptxas 13.0.
TEST_CASE("operands, displacements and initial values are constant expressions") {
  const std::pair<std::string, std::uint64_t> constants[] = {
      {"~0x2", ~2ull},
      {"--5", 5},
      {"+5", 5},
      {"1+2", 3},
      {"7-2-1", 4},
      {"2+3*4", 14},
      {"(2+3)*4", 20},
      {"-7/2", static_cast<std::uint64_t>(-3)},
      {"-7U/2", 0x7ffffffffffffffc},
      {"-7>>1", static_cast<std::uint64_t>(-4)},
      {"~0>>60", 15},
      {"0xFFFFFFFFFFFFFFFF>>4", 0x0fffffffffffffff},
      {"1<<40|1", 0x10000000001},
      {"(1<<4)|3&6^1", 19},
      {"~(1|2)", ~3ull},
      {"WARP_SZ*2", 64},
      {"0xFFFFFFFF + 1", 0x100000000},
      {"-7 % 3", 0},
      {"7%(3)", 1},
      {"2*7 % 4", 2},
      {"-1<1", 1},
      {"-1<1U", 0},
      {"-1>=1U", 1},
      {"-1<=0", 1},
      {"3>2>1", 0},
      {"-1==0xFFFFFFFFFFFFFFFF", 1},
      {"1!=2==1", 1},
      {"1<<2<5", 1},
      {"2&2==2", 0},
      {"1^1==1", 0},
      {"1&&2", 1},
      {"0||0", 0},
      {"1||0&&0", 1},
      {"1|0&&0", 0},
      {"5&&3&1", 1},
      {"!5", 0},
      {"!!5", 1},
      {"!0+5", 6},
      {"!(1<2)", 0},
      {"!1==0", 1},
      {"~!0", ~1ull},
      {"!WARP_SZ", 0},
      {"(1<2)-2>>1", ~0ull},
      {"(-8&-4)>>1", static_cast<std::uint64_t>(-4)},
      {"1?5:6", 5},
      {"0?2:3+4", 7},
      {"1?0?3:4:5", 4},
      {"0?1:0?2:3", 3},
      {"WARP_SZ==32?(1):2", 1},
      {"(1?-7:0U)/2", static_cast<std::uint64_t>(-3)},
      {"(0?1:-7U)/2", 0x7ffffffffffffffc},
      {"(.u64)-7/2", 0x7ffffffffffffffc},
      {"(.s64)(3U-10)/2", static_cast<std::uint64_t>(-3)},
      {"9223372036854775807+1>>63", ~0ull},
      {"(1.0+2.0)*2.0<7.0", 1},
      {"-1.5>=1.0||1.0/4.0!=0.25", 0},
  };
  static_assert(std::size(constants) <= 64);
  std::string body, data = ".global .u64 values[] = {0";
  int at = 0;
  for (const auto& [text, value] : constants) {
    body += "mov.u64 %rd4, " + text + "; st.global.u64 [%rd3+8*" + std::to_string(at) +
            "], %rd4;\nld.global.u64 %rd5, values[" + std::to_string(at) +
            "+1]; st.global.u64 [%rd3+(" + std::to_string(at) + "+64)*8], %rd5;\n";
    data += ", " + text;
    ++at;
  }
  test::Module module(test::kernel(body, data + "};\n"));
  CHECK(module.error.sentence == "");
  test::Buffer<std::uint64_t> out(module.memory, 128);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < std::size(constants); ++i) {
    INFO(constants[i].first);
    CHECK(out[i] == constants[i].second);
    CHECK(out[64 + i] == constants[i].second);
  }
  const std::string line = "ptx line 18: ";
  refused("mov.u32 %r1, 1/0;", line + "a constant is divided by 0");
  refused("mov.u32 %r1, 1<<64;", line + "a constant is shifted by more than 63 bits");
  for (const char* text : {"0&&1/0", "1?2:1/0", "5 % 0", "1.0/0.0"})
    refused("mov.b64 %rd4, " + std::string(text) + ";", line + "a constant is divided by 0");
  for (const char* text : {"!1.0", "~1.0", "1.0&&1.0", "1.0?1:2", "(.u64)7.0"})
    refused("mov.b64 %rd4, " + std::string(text) + ";",
            line + "this operator requires integer constants");
  for (const char* text : {"1+2.0", "0f3f800000+0f3f800000"})
    refused("mov.f32 %f1, " + std::string(text) + ";",
            line + "the operands of '+' differ in type, or are hexadecimal floats");
  refused("mov.f32 %f1, 1?2:2.0;", line + "the results of '?' differ in type");
  refused("mov.u32 %r1, 7%3;", line + "expected ',' before '%3'");
}

/// As by ptxas 13.0, in doubles.
TEST_CASE("floating-point constants are computed") {
  test::Module module(test::kernel(R"(
  mov.f64 %d1, -(1.5+1.0)/4.0;
  st.global.f64 [%rd3], %d1;
  mov.f32 %f1, 16777216.0+1.0-16777216.0;
  st.global.f32 [%rd3+8], %f1;
  ld.global.f32 %f2, [third];
  st.global.f32 [%rd3+12], %f2;
)",
                                   ".global .f32 third = 1.0/3.0;\n"));
  CHECK(module.error.sentence == "");
  test::Buffer<double> out(module.memory, 2);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == -0.625);
  float singles[2];
  std::memcpy(singles, &out[1], sizeof singles);
  CHECK(singles[0] == 1.0f);
  CHECK(singles[1] == 1.0f / 3);
}

TEST_CASE("predicates, displacements, indices and vectors take constant expressions") {
  test::Module module(test::kernel(R"(
  .reg .pred %q<3>;
  mov.pred %q1, 2;
  mov.pred %q2, !(1<2);
  selp.u32 %r2, 1, 0, %q1;
  selp.u32 %r3, 0, 2, %q2;
  add.u32 %r2, %r2, %r3;
  setp.eq.and.u32 %q1|%q2, %r2, 1|2, 1==1&&!0;
  selp.u32 %r3, 4, 0, %q1;
  add.u32 %r2, %r2, %r3;
  selp.u32 %r3, 0, 8, !%q1;
  add.u32 %r2, %r2, %r3;
  st.global.v2.u32 [%rd3+(1<2?8:0)], {%r2, 3>2};
  ld.global.u32 %r4, words[1<2];
  st.global.u32 [%rd3+0?0:4], %r4;
  ld.global.u32 %r5, [words+!0*8];
  st.global.u32 [%rd3+3<3], %r5;
)",
                                   ".global .u32 words[3] = {5, 6, 1<2 ? 7 : 8};\n"));
  CHECK(module.error.sentence == "");
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {.block = {1, 1, 1}}, out.address(), out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 7u);
  CHECK(out[1] == 6u);
  CHECK(out[2] == 15u);
  CHECK(out[3] == 1u);
}

TEST_CASE("values of arrays may be nested") {
  CHECK(test::Module(test::kernel("ret;", ".global .u32 x[2][2][2] = {{{1, 2}, {3, 4}}, {{5}}};\n"))
            .program != nullptr);
}

void cutAnywhere(const std::string& whole) {
  CHECK(test::Module(whole).program != nullptr);
  for (std::size_t n = 0; n + 2 < whole.size(); ++n) {
    const std::string text = whole.substr(0, n);
    const std::string_view view = text;
    simulator::CompileError error;
    const auto program = simulator::compile({&view, 1}, error);
    if (!program) CHECK(!error.sentence.empty());
  }
}

TEST_CASE("a text that is cut anywhere compiles or gives an error message") {
  cutAnywhere(
      test::kHeader +
      ".pragma \"nounroll\";\n.visible .entry k()\n.pragma \"nounroll\";\n{\n  ret;\n}\n\n");
  cutAnywhere(test::kernel(R"(
  .pragma "nounroll";
  .shared .align 4 .b8 s[16];
  table: .branchtargets $a, $a;
$a:
  ld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1+16];
  @!%p1 bra $a;
)",
                           ".global .align 8 .u64 x[2] = {1, generic(y)+4};\n.section .debug { .b8 "
                           "1, 2 }\n.global .u32 y;\n"));
}

TEST_CASE("debug information and directives are skipped") {
  test::Module module(test::kHeader + R"(
.file 1 "a;b{.cu" /* another
line */ .file 2 "/*", 1, 2
.visible .entry k(.param .u64 .ptr .global .align 4 out)
.maxntid 128, 2, 1
.minnctapersm 2
{
  .reg .b64 %rd<2>;
$L__begin:
  .loc 1 5 7, function_name $L__info + 4, inlined_at 1 3 2 .loc 1 5 7
  ld.param.u64 %rd1, [out]; // comment
  .pragma "nounroll";
  /* two
     lines */
  st.global.u32 [%rd1+-0], 0x2a;
  ret;
$L__end:
}
.section .debug_str
{
$L__info:
.b8 107, 0
.b32 $L__begin+2
}
)");
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {}, out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 42u);
  CHECK(module.program->kernels()[0].maxThreadsPerBlock == 256u);
}

TEST_CASE("parameters have the layout of the ABI") {
  test::Module module(test::kHeader + R"(
.visible .entry k(.param .u8 a, .param .align 16 .b8 b[24], .param .u16 c, .param .u64 out)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u8 %r1, [a];
  ld.param.u32 %r2, [b+20];
  mov.u64 %rd2, b;
  ld.param.u32 %r3, [%rd2+4];
  ld.param.s16 %r4, [c];
  ld.param.u64 %rd1, [out];
  st.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};
  ret;
}
)");
  const auto& info = module.program->kernels()[0];
  CHECK(info.parameters.size() == 4u);
  CHECK(info.parameters[1].offset == 16u);
  CHECK(info.parameters[2].offset == 40u);
  CHECK(info.parameters[3].offset == 48u);
  CHECK(info.parameterBytes == 56u);
  struct {
    std::uint32_t v[6];
  } b{{0, 11, 0, 0, 0, 22}};
  test::Buffer<std::uint32_t> out(module.memory, 4);
  CHECK(module.run("k", {}, std::uint8_t{200}, b, std::uint16_t{0xfffe}, out.address()) ==
        CUDA_SUCCESS);
  CHECK(out[0] == 200u);
  CHECK(out[1] == 22u);
  CHECK(out[2] == 11u);
  CHECK(out[3] == 0xfffffffeu);
}

// GCC makes them of two fields of a structure. Values not recorded; ptxas 13.0 compiles the text.
TEST_CASE("vectors of registers are moved and named by lane") {
  test::Module module(test::kernel(R"(
  .reg .v2 .u32 %v, %z; .reg .v4 .f32 %w;
  mov.v2.u32 %v, {7, -1};
  mov.v2.u32 %v, {%v.y, %v.x};
  mov.v2.u32 %z, %v;
  mov.v4.f32 %w, {0f3F800000, 0f40000000, 0f40400000, 0f40800000};
  setp.eq.u32 %p1, %v.x, 7;
  @%p1 mov.v2.u32 %z, {1, 2};
  st.global.v2.u32 [%rd1], %z;
  st.global.v4.f32 [%rd1+16], %w;
  st.global.f32 [%rd1+8], %w.b;
  ld.global.v2.u32 %v, [%rd1+16];
  st.global.u32 [%rd1+12], %v.y;
)"));
  test::Buffer<std::uint32_t> out(module.memory, 8);
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  const std::uint32_t expected[] = {0xffffffff, 7,          0x40400000, 0x40000000,
                                    0x3f800000, 0x40000000, 0x40400000, 0x40800000};
  for (std::size_t i = 0; i < 8; ++i) CHECK(out[i] == expected[i]);
  for (const char* wrong :
       {".reg .v2 .u32 %v; mov.v2.u32 %v, 1;", ".reg .v2 .u32 %v; mov.u32 %r1, %v.z;",
        ".reg .v4 .u32 %v; mov.v2.u32 %v, {1, 2};", "mov.u32 %r1, %r2.x;"}) {
    CAPTURE(wrong);
    CHECK(!test::Module(test::kernel(wrong)).program);
  }
}

// cuda_fp16.hpp writes ".reg.b16" in the PTX of h2exp2 and similar functions.
TEST_CASE("directives need no blanks between them") {
  test::Module module(test::kHeader + R"(
.visible.global.align 4 .b8 table[8];
.visible.entry k(.param.u64 out)
{
  .reg.b32 %r<2>;.reg.b64 %rd<2>;
  .shared.align 8 .b8 s[16];
  ld.param.u64 %rd1,[out];
  mov.u32 %r1,7;
  st.global.u32 [%rd1],%r1;
  ret;
}
)");
  test::Buffer<std::uint32_t> out(module.memory, 1);
  CHECK(module.run("k", {}, out.address()) == CUDA_SUCCESS);
  CHECK(out[0] == 7u);
}

}  // namespace
