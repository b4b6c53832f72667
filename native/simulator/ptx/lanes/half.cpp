// Arithmetic of f16, bf16 and their pairs. Sums and products of two such numbers are exact enough
// in float that one more rounding gives the right result; a fused multiply-add is not, so it rounds
// to odd in double first.
#include <cmath>

#include "native/simulator/ptx/lanes/formats.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

/// a * b + c in double, rounded to odd: rounding the result again to few bits is as good as
/// rounding the exact sum.
double fusedToOdd(float a, float b, float c) {
  const double product = double(a) * double(b), addend = c;
  const double sum = product + addend;
  if (!std::isfinite(sum)) return sum;
  const double back = sum - product;
  const double error = (product - (sum - back)) + (addend - back);
  const u64 bits = bitsAs<u64>(sum);
  if (error == 0 || (bits & 1)) return sum;
  const bool outward = (error > 0) == (sum > 0);
  return bitsAs<double>(outward ? bits + 1 : bits - 1);
}

template <class N>
u16 least(u16 a, u16 b, bool greatest, bool nan) {
  const float x = N::widen(a), y = N::widen(b);
  if (x != x || y != y) return nan || (x != x && y != y) ? N::kNan : x != x ? b : a;
  if (x == y) return greatest ? a & b : a | b;
  return (x < y) != greatest ? a : b;
}
template <class N>
u16 toUnit(u16 v) {
  const float x = N::widen(v);
  return x > 0 ? (x < 1 ? v : N::kOne) : u16(0);
}
template <class N>
u16 relu(u16 v) {
  const float x = N::widen(v);
  return x != x ? N::kNan : x > 0 ? v : u16(0);
}

struct Add {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return N::narrow(N::widen(a) + N::widen(b));
  }
};
struct Sub {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return N::narrow(N::widen(a) - N::widen(b));
  }
};
// exact() is precise enough that one more rounding gives the right result.
struct Mul {
  template <class N>
  static double exact(u16 a, u16 b) {
    return N::widen(a) * N::widen(b);
  }
  template <class N>
  static u16 run(u16 a, u16 b) {
    return N::narrow(exact<N>(a, b));
  }
};
struct Fma {
  template <class N>
  static double exact(u16 a, u16 b, u16 c) {
    return fusedToOdd(N::widen(a), N::widen(b), N::widen(c));
  }
  template <class N>
  static u16 run(u16 a, u16 b, u16 c) {
    return N::narrow(exact<N>(a, b, c));
  }
};
template <class F>
struct Relu {
  template <class N, class... T>
  static u16 run(T... v) {
    return relu<N>(F::template run<N>(v...));
  }
};
template <class F>
struct Saturated {
  template <class N, class... T>
  static u16 run(T... v) {
    return toUnit<N>(F::template run<N>(v...));
  }
};
template <class N>
u16 flushedIn(u16 v) {
  return (v & N::kInfinity) == 0 ? v & 0x8000 : v;
}
template <class F>
struct Flushing {
  template <class N, class... T>
  static u16 run(T... v) {
    return flushedIn<N>(F::template run<N>(flushedIn<N>(v)...));
  }
};
/// .ftz of a product: also flushes a result that only the limit of the exponent rounds up to the
/// smallest normal number.
template <class F>
struct FlushingProduct {
  template <class N, class... T>
  static u16 run(T... v) {
    const double exact = F::template exact<N>(flushedIn<N>(v)...);
    const u16 result = N::narrow(exact);
    return std::fabs(exact) < N::kNormal ? result & 0x8000 : result;
  }
};
template <class N>
u16 orNan(u16 a, u16 result) {
  const float x = N::widen(a);
  return x == x ? result : N::kNan;
}
struct Neg {
  template <class N>
  static u16 run(u16 a) {
    return orNan<N>(a, a ^ 0x8000);
  }
};
struct Abs {
  template <class N>
  static u16 run(u16 a) {
    return orNan<N>(a, a & 0x7fff);
  }
};
struct Min {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return least<N>(a, b, false, false);
  }
};
struct Max {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return least<N>(a, b, true, false);
  }
};
struct MinNan {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return least<N>(a, b, false, true);
  }
};
struct MaxNan {
  template <class N>
  static u16 run(u16 a, u16 b) {
    return least<N>(a, b, true, true);
  }
};
/// .xorsign.abs: of the magnitudes, with the sign of the product.
template <class F>
struct XorSign {
  template <class N>
  static u16 run(u16 a, u16 b) {
    const u16 result = F::template run<N>(a & 0x7fff, b & 0x7fff);
    return orNan<N>(result, result | ((a ^ b) & 0x8000));
  }
};
struct Ex2 {
  template <class N>
  static u16 run(u16 a) {
    return N::narrow(std::exp2(double(N::widen(a))));
  }
};
struct Tanh {
  template <class N>
  static u16 run(u16 a) {
    return N::narrow(std::tanh(double(N::widen(a))));
  }
};

/// Like `F`, for one number (D is u16) or for two in one register.
template <class F, class N>
struct Of {
  template <class D, class... T>
  static D run(T... v) {
    if constexpr (sizeof(D) == 2) {
      return F::template run<N>(v...);
    } else {
      return D(F::template run<N>(u16(v)...)) | D(F::template run<N>(u16(v >> 16)...)) << 16;
    }
  }
};

template <class F, class N, class D>
Handler one(const Form& form) {
  return form.flush ? unary<Of<Flushing<F>, N>, D, D> : unary<Of<F, N>, D, D>;
}
template <class F, class N, class D>
Handler rounded(const Form& form) {
  return form.saturate ? binary<Of<Saturated<F>, N>, D, D, D> : binary<Of<F, N>, D, D, D>;
}
template <class F, class N, class D>
Handler two(const Form& form) {
  return form.flush ? rounded<Flushing<F>, N, D>(form) : rounded<F, N, D>(form);
}
template <class F, class N, class D>
Handler extreme(const Form& form) {
  return form.xorSign ? two<XorSign<F>, N, D>(form) : two<F, N, D>(form);
}
template <class F, class N, class D>
Handler fused(const Form& form) {
  if (form.relu) return ternary<Of<Relu<F>, N>, D, D, D, D>;
  return form.saturate ? ternary<Of<Saturated<F>, N>, D, D, D, D> : ternary<Of<F, N>, D, D, D, D>;
}

template <class N, class D>
Handler format(const Form& form) {
  switch (form.op) {
    case Op::Add: return two<Add, N, D>(form);
    case Op::Sub: return two<Sub, N, D>(form);
    case Op::Mul:
      return form.flush ? rounded<FlushingProduct<Mul>, N, D>(form) : rounded<Mul, N, D>(form);
    case Op::Fma:
      return form.flush ? fused<FlushingProduct<Fma>, N, D>(form) : fused<Fma, N, D>(form);
    case Op::Neg: return one<Neg, N, D>(form);
    case Op::Abs: return one<Abs, N, D>(form);
    case Op::Min: return form.nan ? extreme<MinNan, N, D>(form) : extreme<Min, N, D>(form);
    case Op::Max: return form.nan ? extreme<MaxNan, N, D>(form) : extreme<Max, N, D>(form);
    case Op::Ex2: return one<Ex2, N, D>(form);
    case Op::Tanh: return one<Tanh, N, D>(form);
    default: return nullptr;
  }
}

}  // namespace

Handler selectHalf(const Form& form) {
  switch (form.type) {
    case Type::F16: return format<Half, u16>(form);
    case Type::F16x2: return format<Half, u32>(form);
    case Type::BF16: return format<Brain, u16>(form);
    case Type::BF16x2: return format<Brain, u32>(form);
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
