// Spellings that ptxas 13.0 takes for sm_90 although the PTX manual has them not. No test requires
// or forbids them.
#include <set>

#include "native/simulator/test/instructions/form.h"

namespace instructions {

bool isUndocumented(const std::string& name) {
  static const std::set<std::string> kNames = [] {
    std::set<std::string> names;
    for (const char* pattern :
         {"(addc|subc).(u16|s16|sat.s32)", "madc.(lo|hi).(u16|s16)", "madc.hi.sat.s32",
          "fma.(rz|rm)(|.relu).(bf16|bf16x2)", "rcp.(rn|rz).ftz.f64", "testp.(f32|f64)",
          "vset4.s32.u32.lo(|.add)", "cvt.(f16.bf16|bf16.f16|bf16.bf16)",
          "cvt.(rn|rz|rm).(f32.bf16|f64.bf16|ftz.bf16.f32|ftz.f32.bf16)", "cvt.rm.bf16.f32"}) {
      for (const std::string& each : expand(pattern)) names.insert(each);
    }
    return names;
  }();
  return kNames.contains(name);
}

}  // namespace instructions
