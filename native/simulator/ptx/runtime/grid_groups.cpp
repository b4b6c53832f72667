#include "native/simulator/ptx/runtime/grid_groups.h"

#include <algorithm>

namespace simulator::ptx {
namespace {

/// A handle is the address of the grid's workspace; the barrier is its second word. Each block adds
/// to it, so that one round of all blocks adds 2^31: the highest bit says whether a round has
/// ended. Without a cooperative launch there is no workspace, and a block would wait forever.
constexpr std::string_view kText = R"(.version 7.0
.target sm_70
.address_size 64
.weak .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope)
{
  .reg .pred %p;
  .reg .b32 %scope, %low, %high;
  .reg .b64 %handle;
  ld.param.u32 %scope, [scope];
  mov.u32 %high, %envreg1;
  mov.u32 %low, %envreg2;
  mov.b64 %handle, {%low, %high};
  setp.ne.u32 %p, %scope, 1;
  @%p mov.u64 %handle, 0;
  st.param.b64 [handle], %handle;
  ret;
}
.weak .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)
{
  .reg .pred %p;
  .reg .b32 %r, %x, %y, %z, %blocks, %add, %before, %now;
  .reg .b64 %handle;
  ld.param.u64 %handle, [handle];
  setp.eq.u64 %p, %handle, 0;
  @%p trap;
  barrier.sync 0;
  mov.u32 %x, %tid.x;
  mov.u32 %y, %tid.y;
  mov.u32 %z, %tid.z;
  or.b32 %r, %x, %y;
  or.b32 %r, %r, %z;
  setp.ne.u32 %p, %r, 0;
  @%p bra arrived;
  mov.u32 %x, %nctaid.x;
  mov.u32 %y, %nctaid.y;
  mov.u32 %z, %nctaid.z;
  mul.lo.u32 %blocks, %x, %y;
  mul.lo.u32 %blocks, %blocks, %z;
  mov.u32 %x, %ctaid.x;
  mov.u32 %y, %ctaid.y;
  mov.u32 %z, %ctaid.z;
  or.b32 %r, %x, %y;
  or.b32 %r, %r, %z;
  setp.eq.u32 %p, %r, 0;
  mov.u32 %add, 1;
  @%p sub.u32 %add, 0x80000001, %blocks;
  fence.acq_rel.gpu;
  atom.add.u32 %before, [%handle+4], %add;
waiting:
  ld.volatile.u32 %now, [%handle+4];
  xor.b32 %now, %now, %before;
  setp.ge.s32 %p, %now, 0;
  @%p bra waiting;
  fence.acq_rel.gpu;
arrived:
  barrier.sync 0;
  st.param.b32 [result], 0;
  ret;
}
)";

bool isGridGroup(const Function& function) {
  return function.name == "cudaCGGetIntrinsicHandle" || function.name == "cudaCGSynchronize";
}

}  // namespace

std::string_view gridGroups(std::span<const Module> modules) {
  const bool any = std::ranges::any_of(modules, [](const Module& module) {
    return std::ranges::any_of(module.functions, isGridGroup);
  });
  return any ? kText : std::string_view{};
}

}  // namespace simulator::ptx
