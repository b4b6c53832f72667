// Edge cases of arithmetic, one instruction a row. The results are those of a real GPU.
#include <doctest/doctest.h>

#include "native/simulator/ptx/test/harness.h"
#include "native/simulator/ptx/test/kernels.h"

namespace {

/// Operand sizes by letter: p predicate, h 16, r 32, d 64 bits.
struct Row {
  const char* instruction;  ///< with D for the result and A, B, C for the operands
  const char* sizes;        ///< of D, A, B, C
  std::uint64_t a, b, c, expected;
};

constexpr std::uint64_t kOne = 0x3f800000, kNan = 0x7fffffff, kDoubleOne = 0x3ff0000000000000;

const Row kRows[] = {
    {"add.s32 D, A, B;", "rrr", 0x7fffffff, 1, 0, 0x80000000},
    {"add.sat.s32 D, A, B;", "rrr", 0x7fffffff, 1, 0, 0x7fffffff},
    {"sub.sat.s32 D, A, B;", "rrr", 0x80000000, 1, 0, 0x80000000},
    {"add.s16 D, A, B;", "hhh", 0xffff, 2, 0, 1},
    {"mul.lo.u16 D, A, B;", "hhh", 0xffff, 0xffff, 0, 1},
    {"mul.hi.s32 D, A, B;", "rrr", 0x80000000, 0x80000000, 0, 0x40000000},
    {"mul.hi.u64 D, A, B;", "ddd", ~0ull, ~0ull, 0, ~1ull},
    {"mul.wide.s16 D, A, B;", "rhh", 0x8000, 0x7fff, 0, 0xc0008000},
    {"mul.wide.u32 D, A, B;", "drr", 0xffffffff, 0xffffffff, 0, 0xfffffffe00000001},
    {"mad.wide.s32 D, A, B, C;", "drrd", 0xffffffff, 5, 3, static_cast<std::uint64_t>(-2)},
    {"mad.hi.u32 D, A, B, C;", "rrrr", 0x80000000, 4, 7, 9},
    {"mul24.lo.s32 D, A, B;", "rrr", 0x00800001, 3, 0, 0xfe800003},
    {"mul24.hi.u32 D, A, B;", "rrr", 0xffffff, 0xffffff, 0, 0xfffffe00},
    {"sad.s32 D, A, B, C;", "rrrr", 0xfffffffb, 5, 100, 110},
    {"div.u32 D, A, B;", "rrr", 7, 0, 0, 0xffffffff},
    {"div.s32 D, A, B;", "rrr", static_cast<std::uint32_t>(-7), 2, 0,
     static_cast<std::uint32_t>(-3)},
    {"rem.s32 D, A, B;", "rrr", static_cast<std::uint32_t>(-7), 2, 0, 0xffffffff},
    {"div.s64 D, A, B;", "ddd", 1ull << 63, ~0ull, 0, 1ull << 63},
    {"abs.s32 D, A;", "rr", 0x80000000, 0, 0, 0x80000000},
    {"min.s32 D, A, B;", "rrr", 0xffffffff, 1, 0, 0xffffffff},
    {"min.u32 D, A, B;", "rrr", 0xffffffff, 1, 0, 1},
    {"max.s64 D, A, B;", "ddd", ~0ull, 1, 0, 1},
    {"add.s16x2 D, A, B;", "rrr", 0xffff7fff, 0x00010001, 0, 0x00008000},
    {"dp4a.s32.s32 D, A, B, C;", "rrrr", 0xff02fe01, 0x01020304, 10, 10 - 1 + 4 - 6 + 4},
    {"dp2a.lo.u32.u32 D, A, B, C;", "rrrr", 0x00020003, 0x05060708, 1, 1 + 3 * 8 + 2 * 7},
    {"vadd.u32.u32.u32 D, A, B;", "rrr", 0xffffffff, 5, 0, 4},  // not recorded, as the next two
    {"vadd.u32.s32.s32.add D, A, B, C;", "rrrr", 0xffffffff, 5, 0xfffffffd, 1},
    {"vsub.u32.u32.u32.add D, A, B, C;", "rrrr", 3, 5, 10, 8},
    {"vadd4.u32.u32.u32.sat D, A, B, C;", "rrrr", 0xff01fe02, 0x01010505, 0, 0xff02ff07},
    {"vabsdiff2.s32.s32.s32 D, A, B, C;", "rrrr", 0xffff0001, 0x00010003, 0, 0x00020002},
    {"shl.b32 D, A, B;", "rrr", 1, 32, 0, 0},
    {"shr.s32 D, A, B;", "rrr", 0x80000000, 99, 0, 0xffffffff},
    {"shr.u64 D, A, B;", "ddr", ~0ull, 64, 0, 0},
    {"shf.l.wrap.b32 D, A, B, C;", "rrrr", 0x80000000, 1, 33, 3},
    {"shf.r.clamp.b32 D, A, B, C;", "rrrr", 0x12345678, 0x9abcdef0, 40, 0x9abcdef0},
    {"popc.b64 D, A;", "rd", 0xf0f0000000000001, 0, 0, 9},
    {"clz.b32 D, A;", "rr", 0, 0, 0, 32},
    {"clz.b64 D, A;", "rd", 1, 0, 0, 63},
    {"bfind.s32 D, A;", "rr", 0xfffffffe, 0, 0, 0},
    {"bfind.u32 D, A;", "rr", 0, 0, 0, 0xffffffff},
    {"bfind.shiftamt.u32 D, A;", "rr", 0x100, 0, 0, 23},
    {"brev.b32 D, A;", "rr", 0x80000001, 0, 0, 0x80000001},
    {"brev.b64 D, A;", "dd", 1, 0, 0, 1ull << 63},
    {"bfe.s32 D, A, B, C;", "rrrr", 0x00000f00, 8, 4, 0xffffffff},
    {"bfe.u32 D, A, B, C;", "rrrr", 0xdeadbeef, 24, 16, 0xde},
    {"bfe.s64 D, A, B, C;", "ddrr", 0x80, 4, 4, static_cast<std::uint64_t>(-8)},
    {"bmsk.clamp.b32 D, A, B;", "rrr", 28, 8, 0, 0xf0000000},
    {"szext.clamp.s32 D, A, B;", "rrr", 0xff, 8, 0, 0xffffffff},
    {"prmt.b32 D, A, B, C;", "rrrr", 0x33221180, 0x77665544, 0x8740, 0xff774480},
    {"lop3.b32 D, A, B, C, 0x96;", "rrrr", 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x96969696},
    {"not.b16 D, A;", "hh", 0x00ff, 0, 0, 0xff00},
    {"cnot.b32 D, A;", "rr", 0, 0, 0, 1},
    {"add.f32 D, A, B;", "rrr", 0x7f800000, 0xff800000, 0, kNan},
    {"add.rz.f32 D, A, B;", "rrr", kOne, 0x33ffffff, 0, 0x3f800000},
    {"add.rp.f32 D, A, B;", "rrr", kOne, 1, 0, 0x3f800001},
    {"add.rm.f32 D, A, B;", "rrr", kOne, 0x80000001, 0, 0x3f7fffff},
    {"add.ftz.f32 D, A, B;", "rrr", 0x00400000, 0x80000001, 0, 0},
    {"add.sat.f32 D, A, B;", "rrr", kOne, kOne, 0, kOne},
    {"mul.f32 D, A, B;", "rrr", 1, 0x3f000000, 0, 0},
    {"mul.rp.f32 D, A, B;", "rrr", 1, 0x3f000000, 0, 1},
    {"fma.rn.f32 D, A, B, C;", "rrrr", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
    {"div.rn.f32 D, A, B;", "rrr", kOne, 0x40400000, 0, 0x3eaaaaab},
    {"div.rz.f32 D, A, B;", "rrr", kOne, 0x40400000, 0, 0x3eaaaaaa},
    {"sqrt.rn.f32 D, A;", "rr", 0x40000000, 0, 0, 0x3fb504f3},
    {"sqrt.rn.f32 D, A;", "rr", 0xbf800000, 0, 0, kNan},
    {"rcp.rn.f32 D, A;", "rr", 0x80000000, 0, 0, 0xff800000},
    {"min.f32 D, A, B;", "rrr", 0, 0x80000000, 0, 0x80000000},
    {"max.f32 D, A, B;", "rrr", 0x7fc00000, kOne, 0, kOne},
    {"max.NaN.f32 D, A, B;", "rrr", 0x7fc00000, kOne, 0, kNan},
    {"neg.f32 D, A;", "rr", 0x7fc00001, 0, 0, kNan},
    {"copysign.f32 D, A, B;", "rrr", 0x80000000, kOne, 0, 0xbf800000},
    {"ex2.approx.f32 D, A;", "rr", 0x40400000, 0, 0, 0x41000000},
    {"lg2.approx.f32 D, A;", "rr", 0x41000000, 0, 0, 0x40400000},
    {"rsqrt.approx.f32 D, A;", "rr", 0x40800000, 0, 0, 0x3f000000},
    {"add.rp.f64 D, A, B;", "ddd", kDoubleOne, 1, 0, kDoubleOne + 1},
    {"fma.rz.f64 D, A, B, C;", "dddd", kDoubleOne, kDoubleOne, 1, kDoubleOne},
    {"div.rm.f64 D, A, B;", "ddd", kDoubleOne, 0x4008000000000000, 0, 0x3fd5555555555555},
    {"min.f64 D, A, B;", "ddd", 0x7ff8000000000000, 0xfff8000000000001, 0, 0x7ff8000000000000},
    {"cvt.rzi.s32.f32 D, A;", "rr", 0xcf800000, 0, 0, 0x80000000},
    {"cvt.rzi.u32.f32 D, A;", "rr", 0xbf800000, 0, 0, 0},
    {"cvt.rzi.s32.f32 D, A;", "rr", kNan, 0, 0, 0},
    {"cvt.rzi.s64.f32 D, A;", "dr", kNan, 0, 0, 1ull << 63},
    {"cvt.rni.s32.f32 D, A;", "rr", 0x40200000, 0, 0, 2},
    {"cvt.rpi.f32.f32 D, A;", "rr", 0xbf000000, 0, 0, 0x80000000},
    {"cvt.rn.f32.s64 D, A;", "rd", 0x7fffffffffffffff, 0, 0, 0x5f000000},
    {"cvt.rz.f32.u32 D, A;", "rr", 0xffffffff, 0, 0, 0x4f7fffff},
    {"cvt.rn.f32.f64 D, A;", "rd", 0x7fefffffffffffff, 0, 0, 0x7f800000},
    {"cvt.rz.f32.f64 D, A;", "rd", 0x7fefffffffffffff, 0, 0, 0x7f7fffff},
    {"cvt.sat.f32.f32 D, A;", "rr", 0x40000000, 0, 0, kOne},
    {"cvt.sat.u8.s32 D, A;", "rr", 300, 0, 0, 255},
    {"cvt.sat.s8.s32 D, A;", "rr", 0xffffff00, 0, 0, 0xffffff80},
    {"cvt.s32.s8 D, A;", "rr", 0x180, 0, 0, 0xffffff80},
    {"cvt.rn.f16.f32 D, A;", "hr", 0x477ff000, 0, 0, 0x7c00},
    {"cvt.rz.f16.f32 D, A;", "hr", 0x477ff000, 0, 0, 0x7bff},
    {"cvt.rn.f16.f32 D, A;", "hr", 0x33000001, 0, 0, 1},
    {"cvt.f32.f16 D, A;", "rh", 1, 0, 0, 0x33800000},
    {"cvt.rn.bf16.f32 D, A;", "hr", 0x3f808000, 0, 0, 0x3f80},
    {"cvt.rp.bf16.f32 D, A;", "hr", 0x3f808000, 0, 0, 0x3f81},
    {"cvt.rp.bf16.f32 D, A;", "hr", 0xbf808000, 0, 0, 0xbf80},
    {"cvt.rm.bf16.f32 D, A;", "hr", 0x3f808000, 0, 0, 0x3f80},
    {"cvt.rm.bf16.f32 D, A;", "hr", 0xbf808000, 0, 0, 0xbf81},
    {"cvt.rn.f16x2.f32 D, A, B;", "rrr", kOne, 0x40000000, 0, 0x3c004000},
    {"add.f16 D, A, B;", "hhh", 0x7bff, 0x7bff, 0, 0x7c00},
    {"fma.rn.f16 D, A, B, C;", "hhhh", 0x3c01, 0x3c01, 0xbc02, 0x0010},
    {"fma.rn.f16x2 D, A, B, C;", "rrrr", 0x3c004000, 0x40004000, 0x3c003c00, 0x42004500},
    {"max.bf16 D, A, B;", "hhh", 0x7fc0, 0xbf80, 0, 0xbf80},
    {"setp.ltu.f32 D, A, B;", "prr", kNan, 0, 0, 1},
    {"setp.ne.f32 D, A, B;", "prr", kNan, 0, 0, 0},
    {"setp.neu.f32 D, A, B;", "prr", kNan, 0, 0, 1},
    {"setp.hi.u32 D, A, B;", "prr", 0xffffffff, 1, 0, 1},
    {"setp.eq.ftz.f32 D, A, B;", "prr", 1, 0, 0, 1},
    {"set.lt.f32.s32 D, A, B;", "rrr", 0xffffffff, 1, 0, kOne},
    {"set.gt.u32.f32 D, A, B;", "rrr", kOne, 0, 0, 0xffffffff},
    {"slct.s32.f32 D, A, B, C;", "rrrr", 5, 6, 0x80000000, 5},
    {"testp.subnormal.f32 D, A;", "pr", 1, 0, 0, 1},
};

std::string named(char size, char name) {
  switch (size) {
    case 'p': return std::string("%p") + static_cast<char>('1' + name - 'A');
    case 'h': return std::string("%h") + static_cast<char>('1' + name - 'A');
    case 'r': return std::string("%r") + static_cast<char>('2' + name - 'A');
    default: return std::string("%rd") + static_cast<char>('4' + name - 'A');
  }
}

std::string bodyOf(const Row& row, std::size_t index) {
  std::string text, instruction = row.instruction;
  const std::string sizes = row.sizes;
  const std::uint64_t values[] = {row.a, row.b, row.c};
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const char* move = sizes[i] == 'h' ? "mov.b16 " : sizes[i] == 'r' ? "mov.b32 " : "mov.b64 ";
    text += move + named(sizes[i], static_cast<char>('A' + i - 1)) + ", " +
            std::to_string(values[i - 1]) + ";\n";
  }
  for (std::size_t i = sizes.size(); i < 4; ++i)
    text += std::string("mov.b32 ") + named('r', static_cast<char>('A' + i - 1)) + ", 0;\n";
  const std::size_t operands = instruction.find(' ');
  std::string rest;
  for (const char c : instruction.substr(operands)) {
    if (c < 'A' || c > 'D') {
      rest += c;
    } else {
      const std::size_t which = c == 'D' ? 0 : static_cast<std::size_t>(c - 'A' + 1);
      rest += which < sizes.size() ? named(sizes[which], c) : named('r', c);
    }
  }
  text += instruction.substr(0, operands) + rest + "\n";
  const std::string at = "[%rd1+" + std::to_string(index * 8) + "], ";
  if (sizes[0] == 'p') return text + "selp.u32 %r6, 1, 0, %p4;\nst.global.u32 " + at + "%r6;\n";
  const char* store = sizes[0] == 'h'   ? "st.global.u16 "
                      : sizes[0] == 'r' ? "st.global.u32 "
                                        : "st.global.u64 ";
  return text + store + at + named(sizes[0], 'D') + ";\n";
}

TEST_CASE("each instruction gives the result of a real GPU") {
  std::string body;
  for (std::size_t i = 0; i < std::size(kRows); ++i) body += bodyOf(kRows[i], i);
  test::Module module(test::kernel(body));
  test::Buffer<std::uint64_t> out(module.memory, std::size(kRows));
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  for (std::size_t i = 0; i < std::size(kRows); ++i) {
    CAPTURE(std::string(kRows[i].instruction));
    CHECK(out[i] == kRows[i].expected);
  }
}

TEST_CASE("a carry passes from instruction to instruction") {
  test::Module module(test::kernel(R"(
  mov.u32 %r2, -1;
  add.cc.u32 %r3, %r2, 1;
  addc.cc.u32 %r4, %r2, 0;
  addc.u32 %r5, 5, 0;
  sub.cc.u32 %r6, 0, 1;
  subc.u32 %r7, 9, 0;
  mad.lo.cc.u32 %r8, %r2, 2, 2;
  madc.hi.u32 %r9, %r2, 2, 0;
  st.global.v4.u32 [%rd1], {%r3, %r4, %r5, %r6};
  st.global.v4.u32 [%rd1+16], {%r7, %r8, %r9, %r9};
)"));
  test::Buffer<std::uint32_t> out(module.memory, 8);
  CHECK(module.run("k", {}, out.address(), out.address()) == CUDA_SUCCESS);
  const std::uint32_t expected[] = {0, 0, 6, 0xffffffff, 8, 0, 2, 2};
  for (std::size_t i = 0; i < 8; ++i) CHECK(out[i] == expected[i]);
}

}  // namespace
