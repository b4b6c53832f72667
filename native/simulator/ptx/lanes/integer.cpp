// Integer arithmetic: add, sub, mul, mad, div, rem, min, max, sad, carries, dot products.
#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

template <class T>
struct DoubleOf;
template <>
struct DoubleOf<u16> {
  using type = u32;
};
template <>
struct DoubleOf<s16> {
  using type = s32;
};
template <>
struct DoubleOf<u32> {
  using type = u64;
};
template <>
struct DoubleOf<s32> {
  using type = s64;
};
template <>
struct DoubleOf<u64> {
  using type = uint128;
};
template <>
struct DoubleOf<s64> {
  using type = int128;
};
template <class T>
using Twice = typename DoubleOf<T>::type;

/// Unsigned and at least 32 bits wide, so that arithmetic wraps.
template <class T>
using Modular = std::conditional_t<(sizeof(T) < 4), u32, std::make_unsigned_t<T>>;

template <class T>
constexpr T kLargest = std::is_signed_v<T>
                           ? T(std::make_unsigned_t<T>(~std::make_unsigned_t<T>(0)) >> 1)
                           : T(~T(0));
template <class T>
constexpr T kSmallest = std::is_signed_v<T> ? T(-kLargest<T> - 1) : T(0);

struct Add {
  template <class D, class T>
  static D run(T a, T b) {
    return D(Modular<T>(a) + Modular<T>(b));
  }
};
struct Sub {
  template <class D, class T>
  static D run(T a, T b) {
    return D(Modular<T>(a) - Modular<T>(b));
  }
};
struct MulLow {
  template <class D, class T>
  static D run(T a, T b) {
    return D(Modular<T>(a) * Modular<T>(b));
  }
};
struct MulHigh {
  template <class D, class T>
  static D run(T a, T b) {
    return D((Twice<T>(a) * Twice<T>(b)) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class D, class T>
  static D run(T a, T b) {
    return D(D(a) * D(b));
  }
};
struct MadLow {
  template <class D, class T>
  static D run(T a, T b, T c) {
    return D(Modular<T>(a) * Modular<T>(b) + Modular<T>(c));
  }
};
struct MadHigh {
  template <class D, class T>
  static D run(T a, T b, T c) {
    return Add::run<D>(MulHigh::run<T>(a, b), c);
  }
};
struct MadHighSaturated {
  template <class D>
  static D run(s32 a, s32 b, s32 c) {
    const s64 sum = s64(MulHigh::run<s32>(a, b)) + c;
    return D(sum > kLargest<s32> ? kLargest<s32> : sum < kSmallest<s32> ? kSmallest<s32> : sum);
  }
};
struct MadWide {
  template <class D, class T>
  static D run(T a, T b, D c) {
    return D(Modular<D>(D(a) * D(b)) + Modular<D>(c));
  }
};

template <class T>
T low24(T a) {
  return std::is_signed_v<T> ? T(T(u32(a) << 8) >> 8) : T(a & 0xffffff);
}
struct Mul24Low {
  template <class D, class T>
  static D run(T a, T b) {
    return D(s64(low24(a)) * s64(low24(b)));
  }
};
struct Mul24High {
  template <class D, class T>
  static D run(T a, T b) {
    return D((s64(low24(a)) * s64(low24(b))) >> 16);
  }
};
struct Mad24Low {
  template <class D, class T>
  static D run(T a, T b, T c) {
    return D(u32(Mul24Low::run<T>(a, b)) + u32(c));
  }
};
struct Mad24High {
  template <class D, class T>
  static D run(T a, T b, T c) {
    return D(u32(Mul24High::run<T>(a, b)) + u32(c));
  }
};

struct Mad24HighSaturated {
  template <class D>
  static D run(s32 a, s32 b, s32 c) {
    const s64 sum = s64(Mad24High::run<s32>(a, b, 0)) + c;
    return D(sum > kLargest<s32> ? kLargest<s32> : sum < kSmallest<s32> ? kSmallest<s32> : sum);
  }
};

struct Sad {
  template <class D, class T>
  static D run(T a, T b, T c) {
    return D(Modular<T>(c) +
             (a < b ? Modular<T>(b) - Modular<T>(a) : Modular<T>(a) - Modular<T>(b)));
  }
};
// Division by zero gives all ones, as the hardware does; the smallest value by -1 gives itself.
struct Div {
  template <class D, class T>
  static D run(T a, T b) {
    if (b == 0) return D(~T(0));
    if (std::is_signed_v<T> && b == T(-1)) return D(Modular<T>(0) - Modular<T>(a));
    return D(a / b);
  }
};
struct Rem {
  template <class D, class T>
  static D run(T a, T b) {
    if (b == 0) return D(~T(0));
    if (std::is_signed_v<T> && b == T(-1)) return D(0);
    return D(a % b);
  }
};
struct Abs {
  template <class D, class T>
  static D run(T a) {
    return a < 0 ? D(Modular<T>(0) - Modular<T>(a)) : D(a);
  }
};
struct Neg {
  template <class D, class T>
  static D run(T a) {
    return D(Modular<T>(0) - Modular<T>(a));
  }
};
struct Min {
  template <class D, class T>
  static D run(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class D, class T>
  static D run(T a, T b) {
    return a < b ? b : a;
  }
};
struct MinRelu {
  template <class D, class T>
  static D run(T a, T b) {
    const T m = a < b ? a : b;
    return m < 0 ? T(0) : m;
  }
};
struct MaxRelu {
  template <class D, class T>
  static D run(T a, T b) {
    const T m = a < b ? b : a;
    return m < 0 ? T(0) : m;
  }
};

s32 saturated(s64 value) {
  return value > kLargest<s32>    ? kLargest<s32>
         : value < kSmallest<s32> ? kSmallest<s32>
                                  : s32(value);
}
struct AddSaturated {
  template <class D>
  static D run(s32 a, s32 b) {
    return saturated(s64(a) + b);
  }
};
struct SubSaturated {
  template <class D>
  static D run(s32 a, s32 b) {
    return saturated(s64(a) - b);
  }
};

template <class T>
u32 byteOf(u32 word, int n) {
  return u32(s32(T(word >> (8 * n))));
}
template <class A, class B>
struct Dp4a {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    for (int n = 0; n < 4; ++n) c += byteOf<A>(a, n) * byteOf<B>(b, n);
    return c;
  }
};
template <class A, class B>
const Operation* dp2a(Warp& w, const Operation* op, u32 mask) {
  using HalfA = std::conditional_t<std::is_signed_v<A>, s16, u16>;
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  const int first = op->detail ? 2 : 0;  // .hi
  assign<u32>(w, op->slot[0], mask, [=](int i) {
    return c[i] + u32(s32(HalfA(a[i]))) * byteOf<B>(b[i], first) +
           u32(s32(HalfA(a[i] >> 16))) * byteOf<B>(b[i], first + 1);
  });
  return op + 1;
}

/// add.cc, addc, sub.cc, subc, mad.cc, madc: `full` makes the sum with twice the bits from operands
/// and carry in.
template <class T, bool In, bool Out, class F>
[[gnu::always_inline]] inline const Operation* carrying(Warp& w, const Operation* op, u32 mask,
                                                        F full) {
  T* d = w.at<T>(op->slot[0]);
  u32 carry = w.carry;
  for (int i = 0; i < 32; ++i) {
    if (!((mask >> i) & 1)) continue;
    const Twice<T> sum = full(i, In ? (carry >> i) & 1 : 0);
    d[i] = T(sum);
    if (Out) carry = (carry & ~(1u << i)) | (u32((sum >> (8 * sizeof(T))) & 1) << i);
  }
  w.carry = carry;
  return op + 1;
}

template <class T, bool In, bool Out>
const Operation* addCarry(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]);
  return carrying<T, In, Out>(w, op, mask,
                              [=](int i, u32 carry) { return Twice<T>(a[i]) + b[i] + carry; });
}
template <class T, bool In, bool Out>
const Operation* subCarry(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]);
  return carrying<T, In, Out>(w, op, mask,
                              [=](int i, u32 borrow) { return Twice<T>(a[i]) - b[i] - borrow; });
}
template <class T, bool In, bool Out>
const Operation* madLowCarry(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]), *c = w.at<T>(op->slot[3]);
  return carrying<T, In, Out>(
      w, op, mask, [=](int i, u32 carry) { return Twice<T>(T(a[i] * b[i])) + c[i] + carry; });
}
template <class T, class Signed, bool In, bool Out>
const Operation* madHighCarry(Warp& w, const Operation* op, u32 mask) {
  const Signed *a = w.at<Signed>(op->slot[1]), *b = w.at<Signed>(op->slot[2]);
  const T* c = w.at<T>(op->slot[3]);
  return carrying<T, In, Out>(w, op, mask, [=](int i, u32 carry) {
    return Twice<T>(T(MulHigh::run<Signed>(a[i], b[i]))) + c[i] + carry;
  });
}

template <class T, bool In, bool Out>
Handler carries(const Form& form) {
  using Signed = std::make_signed_t<T>;
  switch (form.op) {
    case Op::AddCarry: return addCarry<T, In, Out>;
    case Op::SubCarry: return subCarry<T, In, Out>;
    case Op::MadLowCarry: return madLowCarry<T, In, Out>;
    case Op::MadHighCarry:
      return isSigned(form.type) ? madHighCarry<T, Signed, In, Out> : madHighCarry<T, T, In, Out>;
    default: return nullptr;
  }
}

template <class T>
Handler carries(const Form& form) {
  if (form.carryIn)
    return form.carryOut ? carries<T, true, true>(form) : carries<T, true, false>(form);
  return form.carryOut ? carries<T, false, true>(form) : nullptr;
}

template <class T>
Handler wide(Op op) {
  using D = Twice<T>;
  if (op == Op::MulWide) return binary<MulWide, D, T, T>;
  if (op == Op::MadWide) return ternary<MadWide, D, T, T, D>;
  return nullptr;
}

template <class T>
Handler plain(Op op) {
  switch (op) {
    case Op::Add: return binary<Add, T, T, T>;
    case Op::Sub: return binary<Sub, T, T, T>;
    case Op::MulLow: return binary<MulLow, T, T, T>;
    case Op::MulHigh: return binary<MulHigh, T, T, T>;
    case Op::MadLow: return ternary<MadLow, T, T, T, T>;
    case Op::MadHigh: return ternary<MadHigh, T, T, T, T>;
    case Op::Sad: return ternary<Sad, T, T, T, T>;
    case Op::Div: return binary<Div, T, T, T>;
    case Op::Rem: return binary<Rem, T, T, T>;
    case Op::Abs: return unary<Abs, T, T>;
    case Op::Neg: return unary<Neg, T, T>;
    case Op::Min: return binary<Min, T, T, T>;
    case Op::Max: return binary<Max, T, T, T>;
    default: return nullptr;
  }
}

template <class T>
Handler words(Op op) {
  switch (op) {
    case Op::Mul24Low: return binary<Mul24Low, T, T, T>;
    case Op::Mul24High: return binary<Mul24High, T, T, T>;
    case Op::Mad24Low: return ternary<Mad24Low, T, T, T, T>;
    case Op::Mad24High: return ternary<Mad24High, T, T, T, T>;
    default: return nullptr;
  }
}

Handler signedWords(Op op) {
  switch (op) {
    case Op::AddSaturated: return binary<AddSaturated, s32, s32, s32>;
    case Op::SubSaturated: return binary<SubSaturated, s32, s32, s32>;
    case Op::MadHighSaturated: return ternary<MadHighSaturated, s32, s32, s32, s32>;
    case Op::Mad24HighSaturated: return ternary<Mad24HighSaturated, s32, s32, s32, s32>;
    case Op::MinRelu: return binary<MinRelu, s32, s32, s32>;
    case Op::MaxRelu: return binary<MaxRelu, s32, s32, s32>;
    default: return nullptr;
  }
}

Handler dotProduct(const Form& form) {
  const bool a = isSigned(form.type), b = form.secondSigned;
  if (form.op == Op::Dp4a) {
    if (a)
      return b ? ternary<Dp4a<s8, s8>, u32, u32, u32, u32>
               : ternary<Dp4a<s8, u8>, u32, u32, u32, u32>;
    return b ? ternary<Dp4a<u8, s8>, u32, u32, u32, u32>
             : ternary<Dp4a<u8, u8>, u32, u32, u32, u32>;
  }
  if (a) return b ? dp2a<s16, s8> : dp2a<s16, u8>;
  return b ? dp2a<u16, s8> : dp2a<u16, u8>;
}

}  // namespace

Handler selectInteger(const Form& form) {
  if (form.op == Op::Dp4a || form.op == Op::Dp2a) return dotProduct(form);
  switch (form.type) {
    case Type::U16:
    case Type::B16:
      if (Handler found = wide<u16>(form.op)) return found;
      return plain<u16>(form.op);
    case Type::S16:
      if (Handler found = wide<s16>(form.op)) return found;
      return plain<s16>(form.op);
    case Type::U32:
    case Type::B32:
      if (Handler found = wide<u32>(form.op)) return found;
      if (Handler found = words<u32>(form.op)) return found;
      if (Handler found = carries<u32>(form)) return found;
      return plain<u32>(form.op);
    case Type::S32:
      if (Handler found = wide<s32>(form.op)) return found;
      if (Handler found = words<s32>(form.op)) return found;
      if (Handler found = carries<u32>(form)) return found;
      if (Handler found = signedWords(form.op)) return found;
      return plain<s32>(form.op);
    case Type::U64:
    case Type::B64:
      if (Handler found = carries<u64>(form)) return found;
      return plain<u64>(form.op);
    case Type::S64:
      if (Handler found = carries<u64>(form)) return found;
      return plain<s64>(form.op);
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
