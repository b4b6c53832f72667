// cvt: between integers of all widths and the floating-point formats.
#include <cmath>
#include <limits>

#include "native/simulator/ptx/lanes/formats.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

// Integer registers may be wider than the type: the source is cut to its type, the result fills the
// register by its sign.

template <class R, class S, class D>
const Operation* plainInteger(Warp& w, const Operation* op, u32 mask) {
  const R* a = w.at<R>(op->slot[1]);
  if constexpr (sizeof(D) >= 2) {
    if (op->width == sizeof(D)) {
      assign<D>(w, op->slot[0], mask, [=](int i) { return D(S(a[i])); });
      return op + 1;
    }
  }
  switch (op->width) {
    case 2: assign<u16>(w, op->slot[0], mask, [=](int i) { return u16(D(S(a[i]))); }); break;
    case 4: assign<u32>(w, op->slot[0], mask, [=](int i) { return u32(D(S(a[i]))); }); break;
    default: assign<u64>(w, op->slot[0], mask, [=](int i) { return u64(D(S(a[i]))); }); break;
  }
  return op + 1;
}

template <class D, class S>
D clamped(S value) {
  const int128 wide = value, low = std::numeric_limits<D>::min(),
               high = std::numeric_limits<D>::max();
  return D(wide < low ? low : wide > high ? high : wide);
}

/// Lanes of an integer register as 64-bit numbers of the source's type.
template <class F>
void eachInteger(Warp& w, const Operation* op, Type type, F use) {
  const unsigned registerBytes = op->target, unusedBits = 64 - 8 * bytesOf(type);
  for (int i = 0; i < 32; ++i) {
    const u64 raw = registerBytes == 2   ? w.at<u16>(op->slot[1])[i]
                    : registerBytes == 4 ? w.at<u32>(op->slot[1])[i]
                                         : w.at<u64>(op->slot[1])[i];
    const u64 shifted = raw << unusedBits;
    use(i, isSigned(type) ? u64(s64(shifted) >> unusedBits) : shifted >> unusedBits);
  }
}

void assignRegister(Warp& w, const Operation* op, u32 mask, const u64* value) {
  switch (op->width) {
    case 2: assign<u16>(w, op->slot[0], mask, [=](int i) { return u16(value[i]); }); break;
    case 4: assign<u32>(w, op->slot[0], mask, [=](int i) { return u32(value[i]); }); break;
    default: assign<u64>(w, op->slot[0], mask, [=](int i) { return value[i]; }); break;
  }
}

template <class D>
const Operation* saturatedInteger(Warp& w, const Operation* op, u32 mask) {
  const Type from = Type(op->detail);
  alignas(64) u64 result[32];
  eachInteger(w, op, from, [&](int i, u64 v) {
    result[i] = u64(isSigned(from) ? clamped<D>(s64(v)) : clamped<D>(v));
  });
  assignRegister(w, op, mask, result);
  return op + 1;
}

template <class F>
F toInteger(F v, Rounding rounding) {
  switch (rounding) {
    case Rounding::IntegerZero: return std::trunc(v);
    case Rounding::IntegerDown: return std::floor(v);
    case Rounding::IntegerUp: return std::ceil(v);
    default: return std::nearbyint(v);
  }
}

/// Saturates; NaN gives zero or, where a 64-bit type takes part, the smallest signed number of the
/// result's width.
template <class D, class F>
[[gnu::always_inline]] inline D fromFloat(F v, bool wide) {
  if (v != v) return wide ? D(std::make_unsigned_t<D>(1) << (8 * sizeof(D) - 1)) : D(0);
  constexpr F kAbove = F(std::numeric_limits<D>::max() / 2 + 1) * 2;
  if (v >= kAbove) return std::numeric_limits<D>::max();
  if (v < F(std::numeric_limits<D>::min())) return std::numeric_limits<D>::min();
  return D(v);
}

template <class T>
struct Single {
  using Stored = T;
  static T read(T v) { return v; }
};
template <class N>
struct Narrow {
  using Stored = u16;
  static float read(u16 v) { return N::widen(v); }
};

template <class R, class D, Rounding rounding>
const Operation* floatToInteger(Warp& w, const Operation* op, u32 mask) {
  const auto* a = w.at<typename R::Stored>(op->slot[1]);
  const bool flush = op->flags & Operation::kFlushes,
             wide = sizeof(typename R::Stored) == 8 || sizeof(D) == 8;
  alignas(64) u64 result[32];
  for (int i = 0; i < 32; ++i) {
    auto v = R::read(a[i]);
    if constexpr (sizeof(v) == 4) v = flush ? flushed(v) : v;
    result[i] = u64(fromFloat<D>(toInteger(v, rounding), wide));
  }
  assignRegister(w, op, mask, result);
  return op + 1;
}

/// s32 or u32 to f32 or f64: the common ones, which vectorise.
template <class S, class D>
const Operation* wordToFloat(Warp& w, const Operation* op, u32 mask) {
  const S* a = w.at<S>(op->slot[1]);
  assign<D>(w, op->slot[0], mask, [=](int i) { return D(a[i]); });
  return op + 1;
}
template <class D>
const Operation* integerToFloat(Warp& w, const Operation* op, u32 mask) {
  const Type from = Type(op->immediate);
  alignas(64) D result[32];
  eachInteger(w, op, from, [&](int i, u64 v) { result[i] = isSigned(from) ? D(s64(v)) : D(v); });
  const bool saturate = op->flags & Operation::kNegatedSource;
  assign<D>(w, op->slot[0], mask, [&](int i) {
    return saturate ? (result[i] > D(1) ? D(1) : result[i] > D(0) ? result[i] : D(0)) : result[i];
  });
  return op + 1;
}
template <class N>
const Operation* integerToNarrow(Warp& w, const Operation* op, u32 mask) {
  const Type from = Type(op->immediate);
  alignas(64) u16 result[32];
  // 64 bits do not fit a double: what falls off only matters as "something is there".
  const bool saturate = op->flags & Operation::kNegatedSource;
  eachInteger(w, op, from, [&](int i, u64 v) {
    if (saturate) v = isSigned(from) && s64(v) < 0 ? 0 : v != 0;
    const bool negative = isSigned(from) && s64(v) < 0;
    const u64 size = negative ? 0 - v : v;
    const u64 kept = size >> 53 ? (size & ~0xfffull) | ((size & 0xfff) ? 0x1000 : 0) : size;
    result[i] = N::narrow(negative ? -double(kept) : double(kept), Rounding(op->detail));
  });
  assign<u16>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}

template <class D, class S>
D changed(S v, Rounding rounding, bool saturate, bool flush) {
  if constexpr (sizeof(S) == 4) v = flush ? flushed(v) : v;
  if (rounding >= Rounding::IntegerNearest) v = toInteger(v, rounding);
  D result = D(v);
  if constexpr (sizeof(D) == 4) {
    if (sizeof(S) == 4) result = canonical(result);  // from f64 a NaN keeps its sign and upper bits
    if (flush) result = flushed(result);
  }
  if (saturate) result = result > D(0) ? (result < D(1) ? result : D(1)) : D(0);
  return result;
}
template <class S, class D, Rounding rounding, bool saturate, bool flush>
const Operation* floatToFloat(Warp& w, const Operation* op, u32 mask) {
  const S* a = w.at<S>(op->slot[1]);
  assign<D>(w, op->slot[0], mask,
            [=](int i) { return changed<D>(a[i], rounding, saturate, flush); });
  return op + 1;
}
template <class N>
const Operation* narrowToFloat(Warp& w, const Operation* op, u32 mask) {
  const u16* a = w.at<u16>(op->slot[1]);
  const bool flush = op->flags & Operation::kFlushes,
             saturate = op->flags & Operation::kNegatedSource;
  assign<float>(w, op->slot[0], mask, [=](int i) {
    const float v = N::widen(a[i]);
    // bf16 is the upper half of a float and is taken as it is.
    return std::is_same_v<N, Brain> && !saturate && !flush
               ? v
               : changed<float>(v, Rounding::None, saturate, flush);
  });
  return op + 1;
}
template <class N>
const Operation* narrowToDouble(Warp& w, const Operation* op, u32 mask) {
  const u16* a = w.at<u16>(op->slot[1]);
  const bool saturate = op->flags & Operation::kNegatedSource;
  assign<double>(w, op->slot[0], mask, [=](int i) {
    return changed<double>(N::widen(a[i]), Rounding::None, saturate, false);
  });
  return op + 1;
}

// Operation::immediate of conversions to a narrow format.
constexpr s64 kRelu = 1, kFinite = 2;

/// .satfinite: the largest number instead of infinity.
template <class N>
u16 finite(u16 v) {
  return (v & 0x7fff) == N::kInfinity ? v - 1 : v;
}
template <class N>
u16 narrowed(double v, const Operation* op) {
  // .ftz has no effect on cvt to f16: hardware does not flush the f32 source.
  const bool saturate = op->flags & Operation::kNegatedSource;
  const Rounding rounding = Rounding(op->detail);
  if (saturate) v = v > 0 ? (v < 1 ? v : 1.0) : 0.0;
  if (op->immediate & kRelu) v = v > 0 || v != v ? v : 0.0;
  if (rounding >= Rounding::IntegerNearest) v = toInteger(v, rounding);
  const u16 result = N::narrow(v, rounding);
  return op->immediate & kFinite ? finite<N>(result) : result;
}
/// A NaN of f64 as f16: its sign and upper bits.
u16 upperNan(double v) {
  const u64 bits = bitsAs<u64>(v);
  return u16(((bits >> 48) & 0x8000) | 0x7e00 | ((bits >> 42) & 0x1ff));
}

template <class R, class N>
const Operation* toNarrow(Warp& w, const Operation* op, u32 mask) {
  const auto* a = w.at<typename R::Stored>(op->slot[1]);
  const bool keepsNan = std::is_same_v<typename R::Stored, double> && std::is_same_v<N, Half> &&
                        !(op->flags & Operation::kNegatedSource);
  alignas(64) u16 result[32];
  for (int i = 0; i < 32; ++i) {
    const auto v = R::read(a[i]);
    result[i] = keepsNan && v != v ? upperNan(v) : narrowed<N>(v, op);
  }
  assign<u16>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}
/// cvt.f16x2.f32 d, a, b: a above b.
template <class N>
const Operation* toPair(Warp& w, const Operation* op, u32 mask) {
  const float *a = w.at<float>(op->slot[1]), *b = w.at<float>(op->slot[2]);
  alignas(64) u32 result[32];
  for (int i = 0; i < 32; ++i) result[i] = u32(narrowed<N>(a[i], op)) << 16 | narrowed<N>(b[i], op);
  assign<u32>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}
double onlyPositive(double v, const Operation* op) {
  return op->immediate & kRelu && !(v > 0) && v == v ? 0.0 : v;
}
template <class N>
u16 smallPair(double a, double b, const Operation* op) {
  return u16(N::narrow(onlyPositive(a, op)) << 8 | N::narrow(onlyPositive(b, op)));
}
template <class N>
const Operation* toSmallPair(Warp& w, const Operation* op, u32 mask) {
  const float *a = w.at<float>(op->slot[1]), *b = w.at<float>(op->slot[2]);
  alignas(64) u16 result[32];
  for (int i = 0; i < 32; ++i) result[i] = smallPair<N>(a[i], b[i], op);
  assign<u16>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}
template <class N>
const Operation* pairToSmallPair(Warp& w, const Operation* op, u32 mask) {
  const u32* a = w.at<u32>(op->slot[1]);
  alignas(64) u16 result[32];
  for (int i = 0; i < 32; ++i)
    result[i] = smallPair<N>(Half::widen(u16(a[i] >> 16)), Half::widen(u16(a[i])), op);
  assign<u16>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}
template <class N>
const Operation* smallPairToPair(Warp& w, const Operation* op, u32 mask) {
  const u16* a = w.at<u16>(op->slot[1]);
  alignas(64) u32 result[32];
  const auto one = [op](u32 v) { return u32(Half::narrow(onlyPositive(N::widen(u8(v)), op))); };
  for (int i = 0; i < 32; ++i) result[i] = one(a[i] >> 8) << 16 | one(a[i]);
  assign<u32>(w, op->slot[0], mask, [&](int i) { return result[i]; });
  return op + 1;
}
const Operation* toTf32(Warp& w, const Operation* op, u32 mask) {
  const float* a = w.at<float>(op->slot[1]);
  constexpr u32 kInfinity = 0x7f800000, kLargest = 0x7f7fe000, kSign = 0x80000000;
  assign<u32>(w, op->slot[0], mask, [=](int i) {
    u32 result = roundedToTf32(op->immediate & kRelu && !(a[i] > 0) && a[i] == a[i] ? 0 : a[i],
                               Rounding(op->detail));
    // .rna rounds a NaN's bits like those of a number, so a small payload is lost and infinity
    // remains.
    const u32 bits = bitsAs<u32>(a[i]), size = bits & ~kSign;
    if (Rounding(op->detail) == Rounding::NearestAway && size > kInfinity &&
        size < kInfinity + 0x1000)
      result = (bits & kSign) | kInfinity;
    return op->immediate & kFinite && (result & ~kSign) == kInfinity ? kLargest | (result & kSign)
                                                                     : result;
  });
  return op + 1;
}

// Selection, from the outside in.

template <class S, class D, bool saturate, bool flush>
Handler floats(Rounding rounding) {
  switch (rounding) {
    case Rounding::IntegerNearest:
      return floatToFloat<S, D, Rounding::IntegerNearest, saturate, flush>;
    case Rounding::IntegerZero: return floatToFloat<S, D, Rounding::IntegerZero, saturate, flush>;
    case Rounding::IntegerDown: return floatToFloat<S, D, Rounding::IntegerDown, saturate, flush>;
    case Rounding::IntegerUp: return floatToFloat<S, D, Rounding::IntegerUp, saturate, flush>;
    default: return floatToFloat<S, D, Rounding::None, saturate, flush>;
  }
}
template <class S, class D>
Handler floats(const Form& form) {
  if (form.saturate)
    return form.flush ? floats<S, D, true, true>(form.rounding)
                      : floats<S, D, true, false>(form.rounding);
  return form.flush ? floats<S, D, false, true>(form.rounding)
                    : floats<S, D, false, false>(form.rounding);
}

template <class R, class D>
Handler integerOf(Rounding rounding) {
  switch (rounding) {
    case Rounding::IntegerZero: return floatToInteger<R, D, Rounding::IntegerZero>;
    case Rounding::IntegerDown: return floatToInteger<R, D, Rounding::IntegerDown>;
    case Rounding::IntegerUp: return floatToInteger<R, D, Rounding::IntegerUp>;
    default: return floatToInteger<R, D, Rounding::IntegerNearest>;
  }
}
template <class R>
Handler toIntegerOf(const Form& form) {
  switch (form.type) {
    case Type::U8: return integerOf<R, u8>(form.rounding);
    case Type::S8: return integerOf<R, s8>(form.rounding);
    case Type::U16: return integerOf<R, u16>(form.rounding);
    case Type::S16: return integerOf<R, s16>(form.rounding);
    case Type::U32: return integerOf<R, u32>(form.rounding);
    case Type::S32: return integerOf<R, s32>(form.rounding);
    case Type::U64: return integerOf<R, u64>(form.rounding);
    case Type::S64: return integerOf<R, s64>(form.rounding);
    default: return nullptr;
  }
}

template <class R, class S>
Handler integersFrom(Type to) {
  switch (to) {
    case Type::U8: return plainInteger<R, S, u8>;
    case Type::S8: return plainInteger<R, S, s8>;
    case Type::U16: return plainInteger<R, S, u16>;
    case Type::S16: return plainInteger<R, S, s16>;
    case Type::U32: return plainInteger<R, S, u32>;
    case Type::S32: return plainInteger<R, S, s32>;
    case Type::U64: return plainInteger<R, S, u64>;
    case Type::S64: return plainInteger<R, S, s64>;
    default: return nullptr;
  }
}
template <class R>
Handler integersIn(const Form& form) {
  switch (form.from) {
    case Type::U8: return integersFrom<R, u8>(form.type);
    case Type::S8: return integersFrom<R, s8>(form.type);
    case Type::U16: return integersFrom<R, u16>(form.type);
    case Type::S16: return integersFrom<R, s16>(form.type);
    case Type::U32: return integersFrom<R, u32>(form.type);
    case Type::S32: return integersFrom<R, s32>(form.type);
    case Type::U64: return integersFrom<R, u64>(form.type);
    case Type::S64: return integersFrom<R, s64>(form.type);
    default: return nullptr;
  }
}
Handler saturating(Type to) {
  switch (to) {
    case Type::U8: return saturatedInteger<u8>;
    case Type::S8: return saturatedInteger<s8>;
    case Type::U16: return saturatedInteger<u16>;
    case Type::S16: return saturatedInteger<s16>;
    case Type::U32: return saturatedInteger<u32>;
    case Type::S32: return saturatedInteger<s32>;
    case Type::U64: return saturatedInteger<u64>;
    case Type::S64: return saturatedInteger<s64>;
    default: return nullptr;
  }
}

Handler fromInteger(const Form& form) {
  if (form.type == Type::F16) return integerToNarrow<Half>;
  if (form.type == Type::BF16) return integerToNarrow<Brain>;
  const bool twice = form.type == Type::F64;
  if (!form.saturate && form.sourceBytes == 4) {
    if (form.from == Type::S32) return twice ? wordToFloat<s32, double> : wordToFloat<s32, float>;
    if (form.from == Type::U32) return twice ? wordToFloat<u32, double> : wordToFloat<u32, float>;
  }
  return twice ? integerToFloat<double> : integerToFloat<float>;
}

template <class N>
Handler narrow(const Form& form) {
  switch (form.from) {
    case Type::F32: return toNarrow<Single<float>, N>;
    case Type::F64: return toNarrow<Single<double>, N>;
    case Type::F16: return toNarrow<Narrow<Half>, N>;
    case Type::BF16: return toNarrow<Narrow<Brain>, N>;
    default: return nullptr;
  }
}

Handler betweenFloats(const Form& form) {
  switch (form.type) {
    case Type::F16: return narrow<Half>(form);
    case Type::BF16: return narrow<Brain>(form);
    case Type::TF32: return form.from == Type::F32 ? toTf32 : nullptr;
    case Type::F32:
      if (form.from == Type::F16) return narrowToFloat<Half>;
      if (form.from == Type::BF16) return narrowToFloat<Brain>;
      return form.from == Type::F64 ? floats<double, float>(form) : floats<float, float>(form);
    case Type::F64:
      if (form.from == Type::F16) return narrowToDouble<Half>;
      if (form.from == Type::BF16) return narrowToDouble<Brain>;
      return form.from == Type::F32 ? floats<float, double>(form) : floats<double, double>(form);
    default: return nullptr;
  }
}

Handler pairs(const Form& form) {
  const bool wide = form.from == Type::F32;
  switch (form.type) {
    case Type::E4M3x2: return wide ? toSmallPair<E4M3> : pairToSmallPair<E4M3>;
    case Type::E5M2x2: return wide ? toSmallPair<E5M2> : pairToSmallPair<E5M2>;
    case Type::BF16x2: return toPair<Brain>;
    default: break;
  }
  if (wide) return toPair<Half>;
  return form.from == Type::E4M3x2 ? smallPairToPair<E4M3> : smallPairToPair<E5M2>;
}

}  // namespace

Handler selectConvert(const Form& form) {
  if (form.op == Op::ConvertPair) return pairs(form);
  const bool toFloat = isFloat(form.type), fromFloating = isFloat(form.from);
  if (toFloat && fromFloating) return betweenFloats(form);
  if (toFloat) return fromInteger(form);
  if (fromFloating) {
    switch (form.from) {
      case Type::F32: return toIntegerOf<Single<float>>(form);
      case Type::F64: return toIntegerOf<Single<double>>(form);
      case Type::F16: return toIntegerOf<Narrow<Half>>(form);
      case Type::BF16: return toIntegerOf<Narrow<Brain>>(form);
      default: return nullptr;
    }
  }
  if (form.saturate) return saturating(form.type);
  switch (form.sourceBytes) {
    case 2: return integersIn<u16>(form);
    case 4: return integersIn<u32>(form);
    default: return integersIn<u64>(form);
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
