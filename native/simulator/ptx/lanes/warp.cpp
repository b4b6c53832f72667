// Exchange between lanes: shuffles, votes, matches, reductions. Values lie in Warp::exchange,
// put there by convergeMembers(); Warp::participants are the lanes of the complete group, of which
// `mask` is the part at this place.
#include "native/simulator/ptx/lanes/lanes.h"

namespace simulator::ptx::SIMULATOR_LANES {
namespace {

template <Op kind>
const Operation* shuffle(Warp& w, const Operation* op, u32 mask) {
  const u32 *b = w.at<u32>(op->slot[2]), *c = w.at<u32>(op->slot[3]);
  alignas(64) u32 value[32];
  u32 inside = 0;
  for (int i = 0; i < 32; ++i) {
    const int offset = int(b[i] & 31), clamp = int(c[i] & 31), segment = int((c[i] >> 8) & 31);
    const int last = (i & segment) | (clamp & ~segment), first = i & segment;
    int from = i;
    bool within = true;
    switch (kind) {
      case Op::ShuffleUp:
        from = i - offset;
        within = from >= last;
        break;
      case Op::ShuffleDown:
        from = i + offset;
        within = from <= last;
        break;
      case Op::ShuffleButterfly:
        from = i ^ offset;
        within = from <= last;
        break;
      default:
        from = first | (offset & ~segment);
        within = from <= last;
        break;
    }
    if (!within) from = i;
    value[i] = u32(w.exchange[from & 31]);
    inside |= u32(within) << i;
  }
  assign<u32>(w, op->slot[0], mask, [&](int i) { return value[i]; });
  if (op->defines & (1 << Operation::kSecondResult))
    w.assignPredicate(op->slot[Operation::kSecondResult], inside, mask);
  return op + 1;
}

u32 ballot(Warp& w) {
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) bits |= u32(w.exchange[i] & 1) << i;
  return bits & w.participants;
}

template <Op kind>
const Operation* vote(Warp& w, const Operation* op, u32 mask) {
  const u32 yes = ballot(w);
  if (kind == Op::VoteBallot) {
    assign<u32>(w, op->slot[0], mask, [=](int) { return yes; });
    return op + 1;
  }
  bool result = false;
  if (kind == Op::VoteAll) result = yes == w.participants;
  if (kind == Op::VoteAny) result = yes != 0;
  if (kind == Op::VoteUniform) result = yes == 0 || yes == w.participants;
  w.assignPredicate(op->slot[0], result ? ~0u : 0, mask);
  return op + 1;
}

u32 equalTo(Warp& w, u64 value) {
  u32 bits = 0;
  for (int i = 0; i < 32; ++i) bits |= u32(w.exchange[i] == value) << i;
  return bits & w.participants;
}
const Operation* matchAny(Warp& w, const Operation* op, u32 mask) {
  for (u32 left = mask; left; left &= left - 1) {
    const int i = __builtin_ctz(left);
    w.at<u32>(op->slot[0])[i] = equalTo(w, w.exchange[i]);
  }
  return op + 1;
}
const Operation* matchAll(Warp& w, const Operation* op, u32 mask) {
  const bool same = equalTo(w, w.exchange[__builtin_ctz(w.participants)]) == w.participants;
  const u32 result = same ? w.participants : 0;
  assign<u32>(w, op->slot[0], mask, [=](int) { return result; });
  if (op->defines & (1 << Operation::kSecondResult))
    w.assignPredicate(op->slot[Operation::kSecondResult], same ? ~0u : 0, mask);
  return op + 1;
}

template <Op kind, class T>
const Operation* reduce(Warp& w, const Operation* op, u32 mask) {
  T result = T(w.exchange[__builtin_ctz(w.participants)]);
  for (u32 left = w.participants & (w.participants - 1); left; left &= left - 1) {
    const T v = T(w.exchange[__builtin_ctz(left)]);
    switch (kind) {
      case Op::ReduxAdd: result = T(u32(result) + u32(v)); break;
      case Op::ReduxMin: result = v < result ? v : result; break;
      case Op::ReduxMax: result = v > result ? v : result; break;
      case Op::ReduxAnd: result &= v; break;
      case Op::ReduxOr: result |= v; break;
      default: result ^= v; break;
    }
  }
  assign<u32>(w, op->slot[0], mask, [=](int) { return u32(result); });
  return op + 1;
}

const Operation* elect(Warp& w, const Operation* op, u32 mask) {
  const u32 leader = u32(__builtin_ctz(w.participants));
  assign<u32>(w, op->slot[0], mask, [=](int) { return leader; });
  w.assignPredicate(op->slot[Operation::kSecondResult], 1u << leader, mask);
  return op + 1;
}

const Operation* warpBarrier(Warp&, const Operation* op, u32) { return op + 1; }

const Operation* activeMask(Warp& w, const Operation* op, u32 mask) {
  assign<u32>(w, op->slot[0], mask, [=](int) { return mask; });
  return op + 1;
}

}  // namespace

Handler selectWarp(const Form& form) {
  const bool negative = isSigned(form.type);
  switch (form.op) {
    case Op::ShuffleUp: return shuffle<Op::ShuffleUp>;
    case Op::ShuffleDown: return shuffle<Op::ShuffleDown>;
    case Op::ShuffleButterfly: return shuffle<Op::ShuffleButterfly>;
    case Op::ShuffleIndex: return shuffle<Op::ShuffleIndex>;
    case Op::VoteAll: return vote<Op::VoteAll>;
    case Op::VoteAny: return vote<Op::VoteAny>;
    case Op::VoteUniform: return vote<Op::VoteUniform>;
    case Op::VoteBallot: return vote<Op::VoteBallot>;
    case Op::MatchAny: return matchAny;
    case Op::MatchAll: return matchAll;
    case Op::ReduxAdd: return reduce<Op::ReduxAdd, u32>;
    case Op::ReduxMin: return negative ? reduce<Op::ReduxMin, s32> : reduce<Op::ReduxMin, u32>;
    case Op::ReduxMax: return negative ? reduce<Op::ReduxMax, s32> : reduce<Op::ReduxMax, u32>;
    case Op::ReduxAnd: return reduce<Op::ReduxAnd, u32>;
    case Op::ReduxOr: return reduce<Op::ReduxOr, u32>;
    case Op::ReduxXor: return reduce<Op::ReduxXor, u32>;
    case Op::Elect: return elect;
    case Op::WarpBarrier: return warpBarrier;
    case Op::ActiveMask: return activeMask;
    default: return nullptr;
  }
}

}  // namespace simulator::ptx::SIMULATOR_LANES
