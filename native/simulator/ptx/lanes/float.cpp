// Arithmetic of f32 and f64. Rounding modes other than to nearest, and .ftz, come from the mxcsr
// that withRounding() sets around these.
#include <cmath>
#include <limits>

#include "native/simulator/ptx/lanes/formats.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

template <class T>
T toUnit(T v) {
  return v > T(0) ? (v < T(1) ? v : T(1)) : T(0);
}

struct Add {
  template <class D>
  static D run(D a, D b) {
    return canonical(a + b);
  }
};
struct Sub {
  template <class D>
  static D run(D a, D b) {
    return canonical(a - b);
  }
};
struct Mul {
  template <class D>
  static D run(D a, D b) {
    return canonical(a * b);
  }
};
struct Div {
  template <class D>
  static D run(D a, D b) {
    return canonical(a / b);
  }
};
/// Above 2^126 the reciprocal that the machine multiplies by is zero.
struct DivApprox {
  template <class D>
  static D run(float a, float b) {
    const u32 size = bitsAs<u32>(b) & 0x7fffffffu;
    return canonical(size > 0x7e800000u && size < 0x7f800000u ? a * __builtin_copysignf(0, b)
                                                              : a / b);
  }
};
struct Fma {
  template <class D>
  static D run(float a, float b, float c) {
    return canonical(__builtin_fmaf(a, b, c));
  }
  template <class D>
  static D run(double a, double b, double c) {
    const double result = __builtin_fma(a, b, c);
    // The host's choice among several NaNs depends on the form of its instruction; the GPU's is the
    // first.
    return result == result ? result : a != a ? a + a : b != b ? b + b : result;
  }
};
struct Sqrt {
  template <class D>
  static D run(float a) {
    return canonical(__builtin_sqrtf(a));
  }
  template <class D>
  static D run(double a) {
    return __builtin_sqrt(a);
  }
};
struct Rcp {
  template <class D>
  static D run(D a) {
    return canonical(D(1) / a);
  }
};
template <class F>
struct Saturated {
  template <class D, class... T>
  static D run(T... v) {
    return toUnit(F::template run<D>(v...));
  }
};

struct Neg {
  template <class D>
  static D run(float a) {
    return canonical(bitsAs<float>(bitsAs<u32>(a) ^ 0x80000000u));
  }
  template <class D>
  static D run(double a) {
    return bitsAs<double>(bitsAs<u64>(a) ^ (1ull << 63));
  }
};
struct Abs {
  template <class D>
  static D run(float a) {
    return canonical(bitsAs<float>(bitsAs<u32>(a) & 0x7fffffffu));
  }
  template <class D>
  static D run(double a) {
    return bitsAs<double>(bitsAs<u64>(a) & ~(1ull << 63));
  }
};
struct Copysign {
  template <class D>
  static D run(float a, float b) {
    return bitsAs<float>((bitsAs<u32>(a) & 0x80000000u) | (bitsAs<u32>(b) & 0x7fffffffu));
  }
  template <class D>
  static D run(double a, double b) {
    return bitsAs<double>((bitsAs<u64>(a) & (1ull << 63)) | (bitsAs<u64>(b) & ~(1ull << 63)));
  }
};

// Of two zeros the minimum is the negative one; a NaN loses against a number unless .NaN is given.
template <bool least, bool nan>
struct Extreme {
  template <class D>
  static D run(D a, D b) {
    using Bits = std::conditional_t<sizeof(D) == 4, u32, u64>;
    const D zero = bitsAs<D>(least ? Bits(bitsAs<Bits>(a) | bitsAs<Bits>(b))
                                   : Bits(bitsAs<Bits>(a) & bitsAs<Bits>(b)));
    const D better = a == b ? zero : (least ? a < b : a > b) ? a : b;
    const D bad = sizeof(D) == 4 ? D(bitsAs<float>(0x7fffffffu)) : a;
    if (nan) return a != a || b != b ? bad : better;
    return a != a ? (b != b ? bad : b) : b != b ? a : better;
  }
};
/// .xorsign.abs: of the magnitudes, with the sign of the product.
template <class F>
struct XorSign {
  static u32 magnitude(u32 v) { return v & 0x7fffffffu; }
  template <class D>
  static D run(float a, float b) {
    const u32 sign = (bitsAs<u32>(a) ^ bitsAs<u32>(b)) & 0x80000000u;
    const float result = F::template run<float>(bitsAs<float>(magnitude(bitsAs<u32>(a))),
                                                bitsAs<float>(magnitude(bitsAs<u32>(b))));
    return result == result ? bitsAs<float>(bitsAs<u32>(result) | sign) : result;
  }
};
template <class F>
struct Flushing {
  template <class D>
  static D run(float a) {
    return F::template run<D>(flushed(a));
  }
  template <class D>
  static D run(float a, float b) {
    return F::template run<D>(flushed(a), flushed(b));
  }
};

// The approximations compute in double, where libm is exact enough, and round once.
struct Sin {
  static double of(double a) { return std::sin(a); }
};
struct Cos {
  static double of(double a) { return std::cos(a); }
};
struct Lg2 {
  static double of(double a) { return std::log2(a); }
};
struct Ex2 {
  static double of(double a) { return std::exp2(a); }
};
struct Tanh {
  static double of(double a) { return std::tanh(a); }
};
struct Rsqrt {
  static double of(double a) { return 1.0 / std::sqrt(a); }
};

template <class F, bool flush>
const Operation* approximate(Warp& w, const Operation* op, u32 mask) {
  const float* a = w.at<float>(op->slot[1]);
  float* d = w.at<float>(op->slot[0]);
  for (int i = 0; i < 32; ++i) {
    if (!((mask >> i) & 1)) continue;
    const float result = canonical(float(F::of(double(flush ? flushed(a[i]) : a[i]))));
    d[i] = flush ? flushed(result) : result;
  }
  return op + 1;
}
const Operation* rsqrtDouble(Warp& w, const Operation* op, u32 mask) {
  const double* a = w.at<double>(op->slot[1]);
  assign<double>(w, op->slot[0], mask, [=](int i) { return 1.0 / __builtin_sqrt(a[i]); });
  return op + 1;
}
/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 know only the upper half of operand and result.
template <bool root>
const Operation* seed(Warp& w, const Operation* op, u32 mask) {
  const double* a = w.at<double>(op->slot[1]);
  constexpr u64 kUpper = 0xffffffff00000000ull;
  assign<double>(w, op->slot[0], mask, [=](int i) {
    const double x = bitsAs<double>(bitsAs<u64>(a[i]) & kUpper);
    const auto whole = [](double v) {
      const bool tiny = (bitsAs<u64>(v) & 0x7ff0000000000000ull) == 0;
      return tiny ? bitsAs<double>(bitsAs<u64>(v) & (1ull << 63)) : v;
    };
    const double result = whole(root ? 1.0 / __builtin_sqrt(whole(x)) : 1.0 / whole(x));
    return bitsAs<double>(bitsAs<u64>(result) & kUpper);
  });
  return op + 1;
}

enum class Class : u32 { Finite, Infinite, Number, NotANumber, Normal, Subnormal };
template <class T>
const Operation* testp(Warp& w, const Operation* op, u32 mask) {
  const T* a = w.at<T>(op->slot[1]);
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) {
    const int kind = std::fpclassify(a[i]);
    bool is = false;
    switch (Class(op->detail)) {
      case Class::Finite: is = kind != FP_INFINITE && kind != FP_NAN; break;
      case Class::Infinite: is = kind == FP_INFINITE; break;
      case Class::Number: is = kind != FP_NAN; break;
      case Class::NotANumber: is = kind == FP_NAN; break;
      case Class::Normal: is = kind == FP_NORMAL || kind == FP_ZERO; break;  // as hardware does
      case Class::Subnormal: is = kind == FP_SUBNORMAL; break;
    }
    bits |= u32(is) << i;
  }
  w.assignPredicate(op->slot[0], bits, mask);
  return op + 1;
}

template <class T>
Handler common(const Form& form) {
  const bool sat = form.saturate;
  switch (form.op) {
    case Op::Add: return sat ? binary<Saturated<Add>, T, T, T> : binary<Add, T, T, T>;
    case Op::Sub: return sat ? binary<Saturated<Sub>, T, T, T> : binary<Sub, T, T, T>;
    case Op::Mul: return sat ? binary<Saturated<Mul>, T, T, T> : binary<Mul, T, T, T>;
    case Op::Fma: return sat ? ternary<Saturated<Fma>, T, T, T, T> : ternary<Fma, T, T, T, T>;
    case Op::Div: return binary<Div, T, T, T>;
    case Op::Sqrt: return unary<Sqrt, T, T>;
    case Op::Rcp: return unary<Rcp, T, T>;
    case Op::Copysign: return binary<Copysign, T, T, T>;
    case Op::Testp: return testp<T>;
    default: return nullptr;
  }
}

template <class F>
Handler signedExtreme(const Form& form) {
  if (form.xorSign)
    return form.flush ? binary<Flushing<XorSign<F>>, float, float, float>
                      : binary<XorSign<F>, float, float, float>;
  return form.flush ? binary<Flushing<F>, float, float, float> : binary<F, float, float, float>;
}
template <bool least>
Handler extreme(const Form& form) {
  if (form.type == Type::F64) return binary<Extreme<least, false>, double, double, double>;
  return form.nan ? signedExtreme<Extreme<least, true>>(form)
                  : signedExtreme<Extreme<least, false>>(form);
}

template <class F>
Handler approximation(const Form& form) {
  return form.flush ? approximate<F, true> : approximate<F, false>;
}

Handler single(const Form& form) {
  switch (form.op) {
    case Op::DivApprox: return binary<DivApprox, float, float, float>;
    case Op::Neg: return form.flush ? unary<Flushing<Neg>, float, float> : unary<Neg, float, float>;
    case Op::Abs: return form.flush ? unary<Flushing<Abs>, float, float> : unary<Abs, float, float>;
    case Op::Sin: return approximation<Sin>(form);
    case Op::Cos: return approximation<Cos>(form);
    case Op::Lg2: return approximation<Lg2>(form);
    case Op::Ex2: return approximation<Ex2>(form);
    case Op::Tanh: return approximation<Tanh>(form);
    case Op::Rsqrt: return approximation<Rsqrt>(form);
    default: return common<float>(form);
  }
}

Handler twofold(const Form& form) {
  switch (form.op) {
    case Op::Neg: return unary<Neg, double, double>;
    case Op::Abs: return unary<Abs, double, double>;
    case Op::Rsqrt: return form.flush ? seed<true> : rsqrtDouble;
    case Op::Rcp: return form.flush ? seed<false> : unary<Rcp, double, double>;
    default: return common<double>(form);
  }
}

}  // namespace

Handler selectFloat(const Form& form) {
  if (form.op == Op::Min) return extreme<true>(form);
  if (form.op == Op::Max) return extreme<false>(form);
  return form.type == Type::F64 ? twofold(form) : single(form);
}

}  // namespace simulator::ptx::SIMULATOR_LANES
