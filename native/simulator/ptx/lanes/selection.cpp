// Chooses, once, the instruction set that the kernels use.
#include <xmmintrin.h>

#include "native/simulator/ptx/lanes/form.h"
#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

namespace lanes_baseline {
Handler select(const Form& form);
}
namespace lanes_v3 {
Handler select(const Form& form);
}
namespace lanes_v4 {
Handler select(const Form& form);
}

namespace {

using Selection = Handler (*)(const Form&);

Selection best() {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512cd");
  return v3 && v4 ? lanes_v4::select : v3 ? lanes_v3::select : lanes_baseline::select;
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
