// setp, set, selp, slct.
#include "native/simulator/ptx/lanes/formats.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

template <Compare c, class T>
[[gnu::always_inline]] inline bool holds(T a, T b) {
  const bool unordered = a != a || b != b;
  switch (c) {
    case Compare::Eq: return a == b;
    case Compare::Ne: return a != b && !unordered;
    case Compare::Lt: return a < b;
    case Compare::Le: return a <= b;
    case Compare::Gt: return a > b;
    case Compare::Ge: return a >= b;
    case Compare::Equ: return a == b || unordered;
    case Compare::Neu: return a != b;
    case Compare::Ltu: return !(a >= b);
    case Compare::Leu: return !(a > b);
    case Compare::Gtu: return !(a <= b);
    case Compare::Geu: return !(a < b);
    case Compare::Num: return !unordered;
    case Compare::Nan: return unordered;
  }
  return false;
}

// How a register of each type is read.
template <class T>
struct Plain {
  using Stored = T;
  static T read(T v) { return v; }
};
struct Flushed {
  using Stored = float;
  static float read(float v) { return flushed(v); }
};
template <class N>
struct Narrow {
  using Stored = u16;
  static float read(u16 v) { return N::widen(v); }
};

template <Compare c, class R>
[[gnu::always_inline]] inline u32 compared(Warp& w, const Operation* op) {
  const auto *a = w.at<typename R::Stored>(op->slot[1]), *b = w.at<typename R::Stored>(op->slot[2]);
  alignas(64) u32 truth[32];
  FOR_LANES(i) truth[i] = holds<c>(R::read(a[i]), R::read(b[i])) ? ~0u : 0;
  return bitsOf(truth);
}

u32 combined(Warp& w, const Operation* op, u32 bits) {
  if (Boolean(op->width) == Boolean::None) return bits;
  const u32 other = w.predicate(op->slot[3]) ^ (op->flags & Operation::kNegatedSource ? ~0u : 0);
  switch (Boolean(op->width)) {
    case Boolean::And: return bits & other;
    case Boolean::Or: return bits | other;
    default: return bits ^ other;
  }
}

template <Compare c, class R>
const Operation* setPredicate(Warp& w, const Operation* op, u32 mask) {
  const u32 bits = compared<c, R>(w, op);
  const u32 first = combined(w, op, bits), second = combined(w, op, ~bits);
  w.assignPredicate(op->slot[0], first, mask);
  if (op->defines & (1 << Operation::kSecondResult))
    w.assignPredicate(op->slot[Operation::kSecondResult], second, mask);
  return op + 1;
}

/// set: all ones or 1.0 of the type in `detail`, or zero.
template <Compare c, class R>
const Operation* setValue(Warp& w, const Operation* op, u32 mask) {
  const u32 bits = combined(w, op, compared<c, R>(w, op)), truth = op->detail;
  if (op->target == 2) {
    assign<u16>(w, op->slot[0], mask, [=](int i) { return (bits >> i) & 1 ? u16(truth) : u16(0); });
  } else {
    assign<u32>(w, op->slot[0], mask, [=](int i) { return (bits >> i) & 1 ? truth : 0u; });
  }
  return op + 1;
}

/// Compares the lower (0) or upper (1) halves of pairs.
template <Compare c, class N>
u32 comparedHalves(Warp& w, const Operation* op, unsigned half) {
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]);
  u32 bits = 0;
  for (int i = 0; i < 32; ++i)
    bits |= u32(holds<c>(N::widen(u16(a[i] >> (16 * half))), N::widen(u16(b[i] >> (16 * half)))))
            << i;
  return combined(w, op, bits);
}
/// set on pairs of halves: slot as set, each half by itself.
template <Compare c, class N>
const Operation* setPair(Warp& w, const Operation* op, u32 mask) {
  const u32 low = comparedHalves<c, N>(w, op, 0), high = comparedHalves<c, N>(w, op, 1),
            truth = op->detail & 0xffff;
  assign<u32>(w, op->slot[0], mask, [=](int i) {
    return ((low >> i) & 1 ? truth : 0) | ((high >> i) & 1 ? truth << 16 : 0);
  });
  return op + 1;
}
/// setp on pairs of halves: p for the lower, q for the upper.
template <Compare c, class N>
const Operation* setPredicatePair(Warp& w, const Operation* op, u32 mask) {
  const u32 low = comparedHalves<c, N>(w, op, 0), high = comparedHalves<c, N>(w, op, 1);
  w.assignPredicate(op->slot[0], low, mask);
  if (op->defines & (1 << Operation::kSecondResult))
    w.assignPredicate(op->slot[Operation::kSecondResult], high, mask);
  return op + 1;
}

template <class T>
const Operation* choose(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]);
  const u32 p = w.predicate(op->slot[3]) ^ (op->flags & Operation::kNegatedSource ? ~0u : 0);
  assign<T>(w, op->slot[0], mask, [=](int i) { return (p >> i) & 1 ? a[i] : b[i]; });
  return op + 1;
}
template <class T, class R>
const Operation* selectBySign(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]);
  const auto* c = w.at<typename R::Stored>(op->slot[3]);
  assign<T>(w, op->slot[0], mask, [=](int i) { return R::read(c[i]) >= 0 ? a[i] : b[i]; });
  return op + 1;
}

struct Predicates {
  template <Compare c, class R>
  static Handler pick() {
    return setPredicate<c, R>;
  }
};
struct Values {
  template <Compare c, class R>
  static Handler pick() {
    return setValue<c, R>;
  }
};
struct PairValues {
  template <Compare c, class N>
  static Handler pick() {
    return setPair<c, N>;
  }
};
struct PairPredicates {
  template <Compare c, class N>
  static Handler pick() {
    return setPredicatePair<c, N>;
  }
};

template <class K, class R>
Handler ordered(Compare compare) {
  switch (compare) {
    case Compare::Eq: return K::template pick<Compare::Eq, R>();
    case Compare::Ne: return K::template pick<Compare::Ne, R>();
    case Compare::Lt: return K::template pick<Compare::Lt, R>();
    case Compare::Le: return K::template pick<Compare::Le, R>();
    case Compare::Gt: return K::template pick<Compare::Gt, R>();
    case Compare::Ge: return K::template pick<Compare::Ge, R>();
    default: return nullptr;
  }
}
template <class K, class R>
Handler floating(Compare compare) {
  switch (compare) {
    case Compare::Equ: return K::template pick<Compare::Equ, R>();
    case Compare::Neu: return K::template pick<Compare::Neu, R>();
    case Compare::Ltu: return K::template pick<Compare::Ltu, R>();
    case Compare::Leu: return K::template pick<Compare::Leu, R>();
    case Compare::Gtu: return K::template pick<Compare::Gtu, R>();
    case Compare::Geu: return K::template pick<Compare::Geu, R>();
    case Compare::Num: return K::template pick<Compare::Num, R>();
    case Compare::Nan: return K::template pick<Compare::Nan, R>();
    default: return ordered<K, R>(compare);
  }
}

template <class K>
Handler comparison(const Form& form) {
  switch (form.from) {
    case Type::B16:
    case Type::U16: return ordered<K, Plain<u16>>(form.compare);
    case Type::B32:
    case Type::U32: return ordered<K, Plain<u32>>(form.compare);
    case Type::B64:
    case Type::U64: return ordered<K, Plain<u64>>(form.compare);
    case Type::S16: return ordered<K, Plain<s16>>(form.compare);
    case Type::S32: return ordered<K, Plain<s32>>(form.compare);
    case Type::S64: return ordered<K, Plain<s64>>(form.compare);
    case Type::F32:
      return form.flush ? floating<K, Flushed>(form.compare)
                        : floating<K, Plain<float>>(form.compare);
    case Type::F64: return floating<K, Plain<double>>(form.compare);
    case Type::F16:
      return form.flush ? floating<K, Narrow<FlushedHalf>>(form.compare)
                        : floating<K, Narrow<Half>>(form.compare);
    case Type::BF16: return floating<K, Narrow<Brain>>(form.compare);
    default: return nullptr;
  }
}

template <class T>
Handler bySign(const Form& form) {
  if (form.from == Type::S32) return selectBySign<T, Plain<s32>>;
  return form.flush ? selectBySign<T, Flushed> : selectBySign<T, Plain<float>>;
}

template <class K>
Handler pairs(const Form& form) {
  if (form.from == Type::BF16x2) return floating<K, Brain>(form.compare);
  return form.flush ? floating<K, FlushedHalf>(form.compare) : floating<K, Half>(form.compare);
}

}  // namespace

Handler selectCompare(const Form& form) {
  const unsigned bytes = bytesOf(form.type);
  const bool paired = form.from == Type::F16x2 || form.from == Type::BF16x2;
  switch (form.op) {
    case Op::SetPredicate:
      return paired ? pairs<PairPredicates>(form) : comparison<Predicates>(form);
    case Op::SetValue: return paired ? pairs<PairValues>(form) : comparison<Values>(form);
    case Op::Select: return bytes == 2 ? choose<u16> : bytes == 4 ? choose<u32> : choose<u64>;
    case Op::SelectBySign:
      return bytes == 2 ? bySign<u16>(form) : bytes == 4 ? bySign<u32>(form) : bySign<u64>(form);
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
