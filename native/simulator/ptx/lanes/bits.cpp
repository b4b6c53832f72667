// Bits: logic, shifts, fields, counts, byte permutation, packing, predicates.
#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

struct And {
  template <class D, class T>
  static D run(T a, T b) {
    return D(a & b);
  }
};
struct Or {
  template <class D, class T>
  static D run(T a, T b) {
    return D(a | b);
  }
};
struct Xor {
  template <class D, class T>
  static D run(T a, T b) {
    return D(a ^ b);
  }
};
struct Not {
  template <class D, class T>
  static D run(T a) {
    return D(~a);
  }
};
struct Cnot {
  template <class D, class T>
  static D run(T a) {
    return D(a == 0);
  }
};
struct Copy {
  template <class D, class T>
  static D run(T a) {
    return D(a);
  }
};
struct ShiftLeft {
  template <class D, class T>
  static D run(T a, u32 n) {
    using Wide = std::conditional_t<(sizeof(T) < 4), u32, T>;
    return n < 8 * sizeof(T) ? D(Wide(a) << (n & 63)) : D(0);
  }
};
struct ShiftRight {
  template <class D, class T>
  static D run(T a, u32 n) {
    constexpr u32 kLast = 8 * sizeof(T) - 1;
    if (std::is_signed_v<T>) return D(a >> (n < kLast ? n : kLast));
    return n <= kLast ? D(a >> (n & kLast)) : D(0);
  }
};
template <bool Clamp>
struct FunnelLeft {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    const u32 n = Clamp ? (c < 32 ? c : 32) : c & 31;
    return D(((u64(b) << 32 | a) << n) >> 32);
  }
};
template <bool Clamp>
struct FunnelRight {
  template <class D>
  static D run(u32 a, u32 b, u32 c) {
    const u32 n = Clamp ? (c < 32 ? c : 32) : c & 31;
    return D((u64(b) << 32 | a) >> n);
  }
};
struct Popc {
  template <class D, class T>
  static D run(T a) {
    return D(__builtin_popcountll(a));
  }
};
struct Clz {
  template <class D, class T>
  static D run(T a) {
    return a == 0 ? D(8 * sizeof(T)) : D(__builtin_clzll(u64(a)) - (64 - 8 * int(sizeof(T))));
  }
};
struct Bfind {
  template <class D, class T>
  static D run(T a) {
    const auto bits = std::make_unsigned_t<T>(a < T(0) ? ~a : a);
    return bits == 0 ? D(~0u) : D(63 - __builtin_clzll(u64(bits)));
  }
};
struct BfindShift {
  template <class D, class T>
  static D run(T a) {
    const D position = Bfind::run<D>(a);
    return position == D(~0u) ? position : D(8 * sizeof(T) - 1 - position);
  }
};
struct Brev {
  template <class D, class T>
  static D run(T a) {
    u64 v = a;
    v = ((v >> 1) & 0x5555555555555555ull) | ((v & 0x5555555555555555ull) << 1);
    v = ((v >> 2) & 0x3333333333333333ull) | ((v & 0x3333333333333333ull) << 2);
    v = ((v >> 4) & 0x0f0f0f0f0f0f0f0full) | ((v & 0x0f0f0f0f0f0f0f0full) << 4);
    return D(__builtin_bswap64(v) >> (64 - 8 * sizeof(T)));
  }
};
/// A position or length of bfe and bfi. Hardware takes the lower 8 bits for 32-bit types and all 32
/// bits for 64-bit types.
template <class T>
u32 fieldAmount(u32 value) {
  if (sizeof(T) == 4) return value & 0xff;
  return value < 0xff ? value
                      : 0xff;  // larger amounts have the same effect and cannot overflow a sum
}
struct Bfe {
  template <class D, class T>
  static D run(T a, u32 b, u32 c) {
    constexpr u32 kBits = 8 * sizeof(T);
    using Unsigned = std::make_unsigned_t<T>;
    const u32 position = fieldAmount<T>(b), length = fieldAmount<T>(c);
    if (length == 0) return D(0);
    const u32 last = position + length - 1 < kBits - 1 ? position + length - 1 : kBits - 1;
    const bool negative = std::is_signed_v<T> && ((Unsigned(a) >> last) & 1);
    Unsigned field = position < kBits ? Unsigned(a) >> position : 0;
    const Unsigned keep = length >= kBits ? ~Unsigned(0) : (Unsigned(1) << length) - 1;
    field &= keep;
    if (negative) {
      const u32 valid =
          position < kBits ? (kBits - position < length ? kBits - position : length) : 0;
      field |= valid >= kBits ? 0 : ~Unsigned(0) << valid;
    }
    return D(field);
  }
};
const auto kFieldOf = [](u32 position, u32 length, u32 bits) -> u64 {
  if (position >= bits || length == 0) return 0;
  const u64 ones = length >= 64 ? ~0ull : (1ull << length) - 1;
  return ones << position;
};
struct Bmsk {
  template <class D>
  static D run(u32 a, u32 b) {
    return D(kFieldOf(a, b, 32));
  }
};
struct BmskWrap {
  template <class D>
  static D run(u32 a, u32 b) {
    return D(kFieldOf(a & 31, b & 31, 32));
  }
};
template <bool Signed, bool Clamp>
struct Szext {
  template <class D>
  static D run(u32 a, u32 b) {
    const u32 n = Clamp ? (b < 32 ? b : 32) : b & 31;
    if (n == 32) return D(a);
    if (n == 0) return D(0);
    return Signed ? D(s32(a << (32 - n)) >> (32 - n)) : D(a & ((1u << n) - 1));
  }
};

template <class T>
const Operation* bfi(Warp& w, const Operation* op, u32 mask) {
  const T *a = w.at<T>(op->slot[1]), *b = w.at<T>(op->slot[2]);
  const u32 *c = w.at<u32>(op->slot[3]), *d = w.at<u32>(op->slot[4]);
  assign<T>(w, op->slot[0], mask, [=](int i) {
    const u32 position = fieldAmount<T>(c[i]), length = fieldAmount<T>(d[i]);
    const T field = T(kFieldOf(position, length, 8 * sizeof(T)));
    return position < 8 * sizeof(T) ? T((b[i] & ~field) | ((a[i] << position) & field)) : b[i];
  });
  return op + 1;
}

/// fns: the n-th set bit from a base, upwards or downwards.
struct Fns {
  template <class D>
  static D run(u32 bits, u32 base, s32 offset) {
    if (u32(offset) == 0x80000000u) return D(0);  // as hardware does
    const int step = offset < 0 ? -1 : 1;
    u32 wanted = offset < 0 ? 0 - u32(offset) : u32(offset);
    if (offset == 0) return (bits >> (base & 31)) & 1 ? D(base) : D(~0u);
    for (int at = int(base); at >= 0 && at < 32; at += step) {
      if (((bits >> at) & 1) && --wanted == 0) return D(at);
    }
    return D(~0u);
  }
};

u32 permuted(u32 a, u32 b, u32 selection) {
  const u64 bytes = u64(b) << 32 | a;
  u32 result = 0;
  for (int n = 0; n < 4; ++n) {
    const u32 pick = selection >> (4 * n);
    u32 byte = u32(bytes >> (8 * (pick & 7))) & 0xff;
    if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
    result |= byte << (8 * n);
  }
  return result;
}
/// The modes of prmt: a table of byte selections for each value of c & 3.
u32 selectionOf(u32 mode, u32 c) {
  static constexpr u32 kTables[7][4] = {{},
                                        {0x3210, 0x4321, 0x5432, 0x6543},   // f4e
                                        {0x5670, 0x6701, 0x7012, 0x0123},   // b4e
                                        {0x0000, 0x1111, 0x2222, 0x3333},   // rc8
                                        {0x3210, 0x3211, 0x3222, 0x3333},   // ecl
                                        {0x0000, 0x1110, 0x2210, 0x3210},   // ecr
                                        {0x1010, 0x3232, 0x1010, 0x3232}};  // rc16
  return mode == 0 ? c : kTables[mode][c & 3];
}
const Operation* permute(Warp& w, const Operation* op, u32 mask) {
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  const u32 mode = op->detail;
  assign<u32>(w, op->slot[0], mask,
              [=](int i) { return permuted(a[i], b[i], selectionOf(mode, c[i])); });
  return op + 1;
}

[[gnu::always_inline]] inline u32 looked(u32 a, u32 b, u32 c, u32 table) {
  u32 result = 0;
  for (u32 n = 0; n < 8; ++n) {
    const u32 term = (n & 4 ? a : ~a) & (n & 2 ? b : ~b) & (n & 1 ? c : ~c);
    result |= term & (0 - ((table >> n) & 1));
  }
  return result;
}
const Operation* lop3(Warp& w, const Operation* op, u32 mask) {
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  const u32 table = op->detail;
  assign<u32>(w, op->slot[0], mask, [=](int i) { return looked(a[i], b[i], c[i], table); });
  return op + 1;
}
/// lop3.BoolOp d|p, a, b, c, table, q: slot 5 is p, slot 6 is q, `width` the boolean operation.
const Operation* lop3Predicate(Warp& w, const Operation* op, u32 mask) {
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  alignas(64) u32 results[32];
  FOR_LANES(i) results[i] = looked(a[i], b[i], c[i], op->detail);
  const u32 q = w.predicate(op->slot[6]) ^ (op->flags & Operation::kNegatedSource ? ~0u : 0),
            set = bitsOf(results);
  assign<u32>(w, op->slot[0], mask, [&](int i) { return results[i]; });
  w.assignPredicate(op->slot[5], Boolean(op->width) == Boolean::And ? set & q : set | q, mask);
  return op + 1;
}

template <class Whole, class Part>
const Operation* pack(Warp& w, const Operation* op, u32 mask) {
  const Part* parts[4];
  for (unsigned k = 0; k < sizeof(Whole) / sizeof(Part); ++k)
    parts[k] = w.at<Part>(op->slot[1 + k]);
  assign<Whole>(w, op->slot[0], mask, [&](int i) {
    Whole value = 0;
    for (unsigned k = 0; k < sizeof(Whole) / sizeof(Part); ++k)
      value |= Whole(parts[k][i]) << (8 * sizeof(Part) * k);
    return value;
  });
  return op + 1;
}
template <class Whole, class Part>
const Operation* unpack(Warp& w, const Operation* op, u32 mask) {
  alignas(64) Whole value[32];
  std::memcpy(value, w.at<Whole>(op->slot[4]), sizeof value);
  for (unsigned k = 0; k < op->width; ++k) {
    assign<Part>(w, op->slot[k], mask,
                 [&](int i) { return Part(value[i] >> (8 * sizeof(Part) * k)); });
  }
  return op + 1;
}

/// cvt.pack: a above b, each clamped to `width` bits; c above them if there is one.
const Operation* packSaturated(Warp& w, const Operation* op, u32 mask) {
  const s32 *a = w.at<s32>(op->slot[1]), *b = w.at<s32>(op->slot[2]);
  const u32* c = op->uses & 8 ? w.at<u32>(op->slot[3]) : nullptr;
  const unsigned bits = op->width;
  const s32 least = op->detail ? -(1 << (bits - 1)) : 0,
            most = (1 << (op->detail ? bits - 1 : bits)) - 1;
  const u32 kept = (1u << bits) - 1;
  const auto clamped = [=](s32 v) { return u32(v < least ? least : v > most ? most : v) & kept; };
  assign<u32>(w, op->slot[0], mask, [=](int i) {
    const u32 above = c ? c[i] << (2 * bits) : 0;
    return above | clamped(a[i]) << bits | clamped(b[i]);
  });
  return op + 1;
}

u32 source(Warp& w, Slot slot) { return w.predicate(slot); }
template <class F>
const Operation* predicates(Warp& w, const Operation* op, u32 mask) {
  w.assignPredicate(op->slot[0],
                    F::template run<u32>(source(w, op->slot[1]), source(w, op->slot[2])), mask);
  return op + 1;
}
const Operation* predicateNot(Warp& w, const Operation* op, u32 mask) {
  w.assignPredicate(op->slot[0], ~source(w, op->slot[1]), mask);
  return op + 1;
}
const Operation* predicateCopy(Warp& w, const Operation* op, u32 mask) {
  w.assignPredicate(op->slot[0], source(w, op->slot[1]), mask);
  return op + 1;
}

template <class T>
Handler sized(const Form& form) {
  switch (form.op) {
    case Op::And: return binary<And, T, T, T>;
    case Op::Or: return binary<Or, T, T, T>;
    case Op::Xor: return binary<Xor, T, T, T>;
    case Op::Not: return unary<Not, T, T>;
    case Op::Cnot: return unary<Cnot, T, T>;
    case Op::Copy: return unary<Copy, T, T>;
    case Op::ShiftLeft: return binary<ShiftLeft, T, T, u32>;
    case Op::ShiftRight:
      return isSigned(form.type)
                 ? binary<ShiftRight, std::make_signed_t<T>, std::make_signed_t<T>, u32>
                 : binary<ShiftRight, T, T, u32>;
    default: return nullptr;
  }
}

template <class T>
Handler counted(const Form& form) {
  using Signed = std::make_signed_t<T>;
  const bool negative = isSigned(form.type);
  switch (form.op) {
    case Op::Popc: return unary<Popc, u32, T>;
    case Op::Clz: return unary<Clz, u32, T>;
    case Op::Bfind: return negative ? unary<Bfind, u32, Signed> : unary<Bfind, u32, T>;
    case Op::BfindShift:
      return negative ? unary<BfindShift, u32, Signed> : unary<BfindShift, u32, T>;
    case Op::Brev: return unary<Brev, T, T>;
    case Op::Bfe:
      return negative ? ternary<Bfe, Signed, Signed, u32, u32> : ternary<Bfe, T, T, u32, u32>;
    case Op::Bfi: return bfi<T>;
    default: return nullptr;
  }
}

Handler words(const Form& form) {
  const bool clamp = form.saturate;
  switch (form.op) {
    case Op::FunnelLeft:
      return clamp ? ternary<FunnelLeft<true>, u32, u32, u32, u32>
                   : ternary<FunnelLeft<false>, u32, u32, u32, u32>;
    case Op::FunnelRight:
      return clamp ? ternary<FunnelRight<true>, u32, u32, u32, u32>
                   : ternary<FunnelRight<false>, u32, u32, u32, u32>;
    case Op::Bmsk: return clamp ? binary<Bmsk, u32, u32, u32> : binary<BmskWrap, u32, u32, u32>;
    case Op::Szext:
      if (isSigned(form.type))
        return clamp ? binary<Szext<true, true>, u32, u32, u32>
                     : binary<Szext<true, false>, u32, u32, u32>;
      return clamp ? binary<Szext<false, true>, u32, u32, u32>
                   : binary<Szext<false, false>, u32, u32, u32>;
    case Op::Fns: return ternary<Fns, u32, u32, u32, s32>;
    case Op::Permute: return permute;
    case Op::Lop3: return lop3;
    case Op::Lop3Predicate: return lop3Predicate;
    default: return nullptr;
  }
}

Handler packing(const Form& form) {
  const unsigned whole = bytesOf(form.type), part = bytesOf(form.from);
  const bool packs = form.op == Op::Pack;
  if (whole == 16 && part == 8) return packs ? pack<uint128, u64> : unpack<uint128, u64>;
  if (whole == 8 && part == 4) return packs ? pack<u64, u32> : unpack<u64, u32>;
  if (whole == 8 && part == 2) return packs ? pack<u64, u16> : unpack<u64, u16>;
  if (whole == 4 && part == 2) return packs ? pack<u32, u16> : unpack<u32, u16>;
  return nullptr;
}

Handler ofPredicates(Op op) {
  switch (op) {
    case Op::And: return predicates<And>;
    case Op::Or: return predicates<Or>;
    case Op::Xor: return predicates<Xor>;
    case Op::Not: return predicateNot;
    case Op::Copy: return predicateCopy;
    default: return nullptr;
  }
}

}  // namespace

u32 bitsOf(const u32* truth) {
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) bits |= u32(truth[i] != 0) << i;
  return bits;
}

Handler selectBits(const Form& form) {
  if (form.type == Type::Pred) return ofPredicates(form.op);
  if (form.op == Op::Pack || form.op == Op::Unpack) return packing(form);
  if (form.op == Op::PackSaturated) return packSaturated;
  switch (bytesOf(form.type)) {
    case 2: return sized<u16>(form);
    case 4:
      if (Handler found = sized<u32>(form)) return found;
      if (Handler found = words(form)) return found;
      return counted<u32>(form);
    case 8:
      if (Handler found = sized<u64>(form)) return found;
      return counted<u64>(form);
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
