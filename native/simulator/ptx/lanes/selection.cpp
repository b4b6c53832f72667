// Chooses, once, the instruction set that the kernels use.
#include <xmmintrin.h>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

namespace lanes_baseline {
Handler select(const Form& form);
}
#ifdef SIMULATOR_HAS_V3
namespace lanes_v3 {
Handler select(const Form& form);
}
#endif

namespace {

using Selection = Handler (*)(const Form&);

Selection best() {
#ifdef SIMULATOR_HAS_V3
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return lanes_v3::select;
#endif
  return lanes_baseline::select;
}

}  // namespace

Handler laneKernel(const Form& form) {
  static const Selection chosen = best();
  return chosen(form);
}

const Operation* withRounding(Warp& warp, const Operation* op, std::uint32_t mask) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(op->detail);
  const Operation* after = op->inner(warp, op, mask);
  _mm_setcsr(before);
  return after;
}

}  // namespace simulator::ptx
