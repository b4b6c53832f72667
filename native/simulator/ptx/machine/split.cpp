// How a warp's lanes drift apart and come together again.
//
// Operations lie in memory in an order in which every path leads upwards and loops are contiguous
// (control_flow.cpp). Of the places where lanes wait, the first in that order (in the innermost
// call) runs; lanes that arrive where others wait join them. So lanes meet at the earliest point
// that they have in common, without a stack of reconvergence points, and any control flow will do.
// A loop that waits for lanes further on would starve them: after many spins others get a turn.
#include <bit>

#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

constexpr std::int32_t kPatience = 128;
const Operation* const kNoFrontier = reinterpret_cast<const Operation*>(~std::uintptr_t{0});

bool precedes(const Split& a, const Split& b) {
  return a.frame->depth != b.frame->depth ? a.frame->depth > b.frame->depth : a.at < b.at;
}

const Split* first(const Warp& warp, std::uint32_t among) {
  const Split* best = nullptr;
  for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
    const Split& split = warp.splits[i];
    if (split.state == Split::State::Ready && (split.lanes & among) &&
        (!best || precedes(split, *best)))
      best = &split;
  }
  return best;
}

/// The ready lanes that come next after those favoured last, going round.
const Split* rotated(Warp& warp) {
  const Split* best = nullptr;
  std::uint32_t nearest = kLanes;
  for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
    const Split& split = warp.splits[i];
    const auto distance = static_cast<std::uint32_t>(
        std::countr_zero(std::rotr(split.lanes, static_cast<int>(warp.rotation + 1))));
    if (split.state != Split::State::Ready || distance >= nearest) continue;
    nearest = distance;
    best = &split;
  }
  warp.rotation = (warp.rotation + 1 + nearest) % kLanes;
  return best;
}

}  // namespace

void Warp::suspend(const Operation* at, std::uint32_t lanes, Split::State state) {
  splits[splitCount++] = {at, frame, lanes, state, 0};
}

void Warp::park() {
  if (!paused) return;
  suspend(paused, active);
  paused = nullptr;
  active = 0;
}

void Warp::suspendIn(Frame* where, const Operation* at, std::uint32_t lanes) {
  splits[splitCount++] = {at, where, lanes, Split::State::Ready, 0};
}

void Warp::enter(Frame* target, std::uint32_t lanes) {
  frame = target;
  active = lanes;
  bank[0] = target->registers();
  bank[1] = target->code->constantBank;
}

bool Warp::ready() const { return first(*this, kAllLanes) != nullptr; }

const Operation* Warp::next() {
  if (patience <= 0) {
    const Split* turn = rotated(*this);
    favoured = turn ? turn->lanes : 0;
    patience = kPatience;
  }
  const Split* chosen = favoured ? first(*this, favoured) : nullptr;
  if (!chosen) favoured = 0;
  if (!chosen) chosen = first(*this, kAllLanes);
  if (!chosen) {
    active = 0;
    return nullptr;
  }
  const Split best = *chosen;
  std::uint32_t lanes = 0, kept = 0;
  frontier = kNoFrontier;
  for (std::uint32_t i = 0; i < splitCount; ++i) {
    const Split& split = splits[i];
    const bool isReady = split.state == Split::State::Ready;
    if (isReady && split.at == best.at && split.frame == best.frame) {
      lanes |= split.lanes;
      continue;
    }
    if (isReady && !favoured && split.frame->depth == best.frame->depth && split.at < frontier)
      frontier = split.at;
    splits[kept++] = split;
  }
  splitCount = kept;
  if (splitCount == 0) patience = kPatience;
  enter(best.frame, lanes);
  return best.at;
}

const Operation* Warp::arriveSlowly(const Operation* at) {
  suspend(at, active);
  active = 0;
  return budget > 0 ? next() : nullptr;
}

const Operation* Warp::exitLanes(std::uint32_t lanes, const Operation* rest) {
  const std::uint32_t staying = active & ~lanes;
  if (staying) suspend(rest, staying);
  alive &= ~lanes;
  leaveFrames(frame, lanes);
  completeGroups();
  block->lanesExited(lanes);
  return next();
}

const Operation* Warp::fault(CUresult result, const Operation*) {
  block->run->fail(result);
  active = 0;
  return nullptr;
}

}  // namespace simulator::ptx
