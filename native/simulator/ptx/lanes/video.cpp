// Several small integers in one register: vadd4 and its like, add.s16x2 and its like.
#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

// Operation::detail of the video instructions.
constexpr u32 kSignedA = 1, kSignedB = 2, kSignedResult = 4, kSaturates = 8, kAccumulates = 16;

s32 part(u32 word, int n, int bits, bool negative) {
  const u32 raw = word << (32 - bits * (n + 1));
  return negative ? s32(raw) >> (32 - bits) : s32(raw >> (32 - bits));
}

bool compared(Compare compare, s32 a, s32 b) {
  switch (compare) {
    case Compare::Eq: return a == b;
    case Compare::Ne: return a != b;
    case Compare::Lt: return a < b;
    case Compare::Le: return a <= b;
    case Compare::Gt: return a > b;
    default: return a >= b;
  }
}

template <Op kind>
s32 combined(s32 a, s32 b, Compare compare) {
  switch (kind) {
    case Op::VideoAdd: return a + b;
    case Op::VideoSub: return a - b;
    case Op::VideoAverage: return (a + b + (a + b >= 0)) >> 1;  // away from zero
    case Op::VideoDifference: return a < b ? b - a : a - b;
    case Op::VideoMin: return a < b ? a : b;
    case Op::VideoMax: return a < b ? b : a;
    default: return compared(compare, a, b);
  }
}

s32 clamped(s32 value, int bits, bool negative) {
  const s32 high = negative ? (1 << (bits - 1)) - 1 : (1 << bits) - 1,
            low = negative ? -high - 1 : 0;
  return value < low ? low : value > high ? high : value;
}

template <Op kind>
const Operation* video(Warp& w, const Operation* op, u32 mask) {
  const u32 *a = w.at<u32>(op->slot[1]), *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  const u32 how = op->detail;
  const int bits = 32 / op->width;
  assign<u32>(w, op->slot[0], mask, [=](int i) {
    u32 result = how & kAccumulates ? c[i] : 0;
    for (int n = 0; n < 32 / bits; ++n) {
      s32 value = combined<kind>(part(a[i], n, bits, how & kSignedA),
                                 part(b[i], n, bits, how & kSignedB), Compare(op->target));
      if (how & kSaturates) value = clamped(value, bits, how & kSignedResult);
      if (how & kAccumulates) {
        result += u32(value);
      } else {
        result |= (u32(value) & ((1u << bits) - 1)) << (bits * n);
      }
    }
    return result;
  });
  return op + 1;
}

// Pairs.
template <class T, Op kind, bool relu>
struct Pair {
  static u16 one(T a, T b) {
    const int value = kind == Op::Add   ? a + b
                      : kind == Op::Sub ? a - b
                      : kind == Op::Min ? (a < b ? a : b)
                      : a < b           ? b
                                        : a;
    return u16(relu && value < 0 ? 0 : value);
  }
  template <class D>
  static D run(u32 a, u32 b) {
    return one(T(a), T(b)) | u32(one(T(a >> 16), T(b >> 16))) << 16;
  }
};
struct NegatePair {
  template <class D>
  static D run(u32 a) {
    return ((0 - a) & 0xffff) | (0 - (a & 0xffff0000));
  }
};

template <class T>
Handler pairs(Op op) {
  switch (op) {
    case Op::Add: return binary<Pair<T, Op::Add, false>, u32, u32, u32>;
    case Op::Sub: return binary<Pair<T, Op::Sub, false>, u32, u32, u32>;
    case Op::Min: return binary<Pair<T, Op::Min, false>, u32, u32, u32>;
    case Op::Max: return binary<Pair<T, Op::Max, false>, u32, u32, u32>;
    case Op::MinRelu: return binary<Pair<T, Op::Min, true>, u32, u32, u32>;
    case Op::MaxRelu: return binary<Pair<T, Op::Max, true>, u32, u32, u32>;
    case Op::Neg: return unary<NegatePair, u32, u32>;
    default: return nullptr;
  }
}

}  // namespace

Handler selectVideo(const Form& form) {
  switch (form.op) {
    case Op::VideoAdd: return video<Op::VideoAdd>;
    case Op::VideoSub: return video<Op::VideoSub>;
    case Op::VideoAverage: return video<Op::VideoAverage>;
    case Op::VideoDifference: return video<Op::VideoDifference>;
    case Op::VideoMin: return video<Op::VideoMin>;
    case Op::VideoMax: return video<Op::VideoMax>;
    case Op::VideoSet: return video<Op::VideoSet>;
    default: return form.type == Type::S16x2 ? pairs<s16>(form.op) : pairs<u16>(form.op);
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
