// atom, red and cp.reduce.async.bulk. Several threads of this process run blocks at the same time,
// so these are atomic operations of the host.
#include "native/simulator/ptx/lanes/formats.h"
#include "native/simulator/ptx/lanes/memory.h"
#include "native/simulator/ptx/machine/bulk_copy.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

constexpr int kOrder = __ATOMIC_SEQ_CST;

/// Replaces *p by next(*p), answers what was there.
template <class U, class F>
[[gnu::always_inline]] inline U exchangeWith(U* p, F next) {
  U before = __atomic_load_n(p, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(p, &before, next(before), true, kOrder, __ATOMIC_RELAXED)) {
  }
  return before;
}

struct Add {
  template <class T>
  static T run(T* p, T b, T) {
    return __atomic_fetch_add(p, b, kOrder);
  }
};
struct And {
  template <class T>
  static T run(T* p, T b, T) {
    return __atomic_fetch_and(p, b, kOrder);
  }
};
struct Or {
  template <class T>
  static T run(T* p, T b, T) {
    return __atomic_fetch_or(p, b, kOrder);
  }
};
struct Xor {
  template <class T>
  static T run(T* p, T b, T) {
    return __atomic_fetch_xor(p, b, kOrder);
  }
};
struct Exchange {
  template <class T>
  static T run(T* p, T b, T) {
    return __atomic_exchange_n(p, b, kOrder);
  }
};
struct Min {
  template <class T>
  static T run(T* p, T b, T) {
    return exchangeWith(p, [b](T a) { return a < b ? a : b; });
  }
};
struct Max {
  template <class T>
  static T run(T* p, T b, T) {
    return exchangeWith(p, [b](T a) { return a < b ? b : a; });
  }
};
struct Inc {
  template <class T>
  static T run(T* p, T b, T) {
    return exchangeWith(p, [b](T a) { return a >= b ? T(0) : T(a + 1); });
  }
};
struct Dec {
  template <class T>
  static T run(T* p, T b, T) {
    return exchangeWith(p, [b](T a) { return a == 0 || a > b ? b : T(a - 1); });
  }
};
struct Compare {
  template <class T>
  static T run(T* p, T expected, T wanted) {
    __atomic_compare_exchange_n(p, &expected, wanted, false, kOrder, kOrder);
    return expected;
  }
};

template <bool flush>
struct AddFloat {
  static u32 run(u32* p, u32 b, u32) {
    const auto take = [](u32 bits) {
      return flush ? flushed(bitsAs<float>(bits)) : bitsAs<float>(bits);
    };
    return exchangeWith(p, [&](u32 a) {
      const float sum = canonical(take(a) + take(b));
      return bitsAs<u32>(flush ? flushed(sum) : sum);
    });
  }
};
struct AddDouble {
  static u64 run(u64* p, u64 b, u64) {
    return exchangeWith(p,
                        [b](u64 a) { return bitsAs<u64>(bitsAs<double>(a) + bitsAs<double>(b)); });
  }
};
template <class N>
struct AddNarrow {
  static u16 sum(u16 a, u16 b) { return N::narrow(N::widen(a) + N::widen(b)); }
  static u16 run(u16* p, u16 b, u16) {
    return exchangeWith(p, [b](u16 a) { return sum(a, b); });
  }
  static u32 run(u32* p, u32 b, u32) {
    return exchangeWith(p, [b](u32 a) {
      return u32(sum(u16(a), u16(b))) | u32(sum(u16(a >> 16), u16(b >> 16))) << 16;
    });
  }
};
template <class N, bool greatest>
struct ExtremeNarrow {
  static u16 pick(u16 a, u16 b) {
    const float x = N::widen(a), y = N::widen(b);
    if (x != x) return b;
    if (y != y) return a;
    return (x < y) != greatest ? a : b;
  }
  static u16 run(u16* p, u16 b, u16) {
    return exchangeWith(p, [b](u16 a) { return pick(a, b); });
  }
  static u32 run(u32* p, u32 b, u32) {
    return exchangeWith(p, [b](u32 a) {
      return u32(pick(u16(a), u16(b))) | u32(pick(u16(a >> 16), u16(b >> 16))) << 16;
    });
  }
};

/// The compiler calls a library for 16 bytes; the host has one instruction.
bool replaceWide(uint128* p, uint128& before, uint128 next) {
  u64 low = u64(before), high = u64(before >> 64);
  bool done;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(done), "+m"(*p), "+a"(low), "+d"(high)
               : "b"(u64(next)), "c"(u64(next >> 64))
               : "memory");
  before = uint128(high) << 64 | low;
  return done;
}
struct ExchangeWide {
  static uint128 run(uint128* p, uint128 b, uint128) {
    uint128 before = 0;
    while (!replaceWide(p, before, b)) {
    }
    return before;
  }
};
struct CompareWide {
  static uint128 run(uint128* p, uint128 expected, uint128 wanted) {
    replaceWide(p, expected, wanted);
    return expected;
  }
};

template <class F, class T, Space space, bool keep>
const Operation* atomically(Warp& w, const Operation* op, u32 mask) {
  w.spin();
  if (keep) w.turn = 0;
  alignas(64) u64 address[32];
  if (!resolve<space, Use::write>(w, op, mask, sizeof(T), address)) return nullptr;
  const T *b = w.at<T>(op->slot[1]), *c = op->uses & 4 ? w.at<T>(op->slot[2]) : b;
  T* d = keep ? w.at<T>(op->slot[0]) : nullptr;
  for (u32 left = mask; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    const T before = F::run(reinterpret_cast<T*>(address[i]), b[i], c[i]);
    if (keep) d[i] = before;
  }
  return op + 1;
}

/// Each element of the source is the operand of an operation of its own.
template <class F, class T>
const Operation* reduceBulk(Warp& w, const Operation* op, u32 mask) {
  w.spin();
  for (u32 left = mask; left; left &= left - 1) {
    BulkCopy copy;
    if (!findBulkCopy(w, op, __builtin_ctz(left), copy)) return nullptr;
    for (u32 at = 0; at < copy.bytes; at += sizeof(T)) {
      T operand;
      __builtin_memcpy(&operand, copy.source + at, sizeof operand);
      F::run(reinterpret_cast<T*>(copy.destination + at), operand, operand);
    }
  }
  return op + 1;
}

/// Generic atom.add.f32: what lies in shared memory keeps subnormal numbers, what lies in device
/// memory does not.
template <bool keep>
const Operation* addFloatAnywhere(Warp& w, const Operation* op, u32 mask) {
  alignas(64) u64 address[32];
  computeAddresses(w, op, mask, address);
  u32 shared = 0;
  for (int i = 0; i < 32; ++i)
    shared |= u32(address[i] >> kWindowShift == kSharedWindow >> kWindowShift) << i;
  const u32 others = mask & ~shared;
  shared &= mask;
  if (shared && !atomically<AddFloat<false>, u32, Space::Generic, keep>(w, op, shared))
    return nullptr;
  if (others && !atomically<AddFloat<true>, u32, Space::Generic, keep>(w, op, others))
    return nullptr;
  return op + 1;
}

template <class F, class T>
Handler placed(const Form& form) {
  if (form.bulk) return reduceBulk<F, T>;
  const bool keep = !form.noReturn;
  switch (form.space) {
    case Space::Global:
      return keep ? atomically<F, T, Space::Global, true> : atomically<F, T, Space::Global, false>;
    case Space::Shared:
      return keep ? atomically<F, T, Space::Shared, true> : atomically<F, T, Space::Shared, false>;
    default:
      return keep ? atomically<F, T, Space::Generic, true>
                  : atomically<F, T, Space::Generic, false>;
  }
}

template <class U, class S>
Handler integers(const Form& form) {
  switch (form.op) {
    case Op::AtomAdd: return placed<Add, U>(form);
    case Op::AtomAnd: return placed<And, U>(form);
    case Op::AtomOr: return placed<Or, U>(form);
    case Op::AtomXor: return placed<Xor, U>(form);
    case Op::AtomExchange: return placed<Exchange, U>(form);
    case Op::AtomCompare: return placed<Compare, U>(form);
    case Op::AtomInc: return placed<Inc, U>(form);
    case Op::AtomDec: return placed<Dec, U>(form);
    case Op::AtomMin: return isSigned(form.type) ? placed<Min, S>(form) : placed<Min, U>(form);
    case Op::AtomMax: return isSigned(form.type) ? placed<Max, S>(form) : placed<Max, U>(form);
    default: return nullptr;
  }
}

template <class N, class U>
Handler narrow(const Form& form) {
  if (form.op == Op::AtomAdd) return placed<AddNarrow<N>, U>(form);
  if (form.op == Op::AtomMin) return placed<ExtremeNarrow<N, false>, U>(form);
  return form.op == Op::AtomMax ? placed<ExtremeNarrow<N, true>, U>(form) : nullptr;
}

}  // namespace

Handler selectAtomic(const Form& form) {
  switch (form.type) {
    case Type::F32:
      if (form.op != Op::AtomAdd) return nullptr;
      if (form.space == Space::Generic)
        return form.noReturn ? addFloatAnywhere<false> : addFloatAnywhere<true>;
      return form.space == Space::Shared ? placed<AddFloat<false>, u32>(form)
                                         : placed<AddFloat<true>, u32>(form);
    case Type::F64: return form.op == Op::AtomAdd ? placed<AddDouble, u64>(form) : nullptr;
    case Type::F16: return narrow<Half, u16>(form);
    case Type::F16x2: return narrow<Half, u32>(form);
    case Type::BF16: return narrow<Brain, u16>(form);
    case Type::BF16x2: return narrow<Brain, u32>(form);
    case Type::B16:
      return form.op == Op::AtomCompare || form.op == Op::AtomExchange ? integers<u16, s16>(form)
                                                                       : nullptr;
    case Type::B128:
      if (form.noReturn) return nullptr;
      return form.op == Op::AtomExchange  ? placed<ExchangeWide, uint128>(form)
             : form.op == Op::AtomCompare ? placed<CompareWide, uint128>(form)
                                          : nullptr;
    case Type::B32:
    case Type::U32:
    case Type::S32: return integers<u32, s32>(form);
    case Type::B64:
    case Type::U64:
    case Type::S64: return integers<u64, s64>(form);
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
