// PTX around a body: one kernel k(out, in) with registers declared, %r1 = tid.x, %rd1 = out, %rd2 =
// in, %rd3 = out + 4 * tid.x.
#pragma once

#include <string>

namespace test {

inline const std::string kHeader = ".version 9.0\n.target sm_90\n.address_size 64\n";

inline std::string kernel(const std::string& body, const std::string& before = {}) {
  return kHeader + before + R"(
.visible .entry k(.param .u64 out, .param .u64 in)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<24>;
  .reg .f32 %f<16>;
  .reg .b64 %rd<24>;
  .reg .f64 %d<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd3, %rd1, %rd3;
)" + body +
         "\n  ret;\n}\n";
}

/// Begins the body of a kernel with bulk copies: %r3 = s, %r2 = m, an mbarrier of one arrival. %p1
/// is false for thread 0.
inline const std::string kBulkSlots = R"(
  .shared .align 16 .b8 s[1024];
  .shared .align 8 .b8 m[8];
  mov.u32 %r2, m;
  mov.u32 %r3, s;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $begin;
  mbarrier.init.shared.b64 [%r2], 1;
$begin:
  bar.sync 0;
)";

}  // namespace test
