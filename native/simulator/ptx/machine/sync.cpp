// .sync operations: lanes wait for each other wherever they are, exchange what they brought, and go
// on.
#include <bit>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

void publish(Warp& w, const Operation* op, std::uint32_t mask) {
  const Slot slot = op->slot[1];
  const auto kind = static_cast<Exchange>(op->width);
  if (kind == Exchange::Nothing) return;
  const std::uint32_t flip = op->flags & Operation::kNegatedSource ? 1 : 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!((mask >> lane) & 1)) continue;
    switch (kind) {
      case Exchange::Word: w.exchange[lane] = w.at<std::uint32_t>(slot)[lane]; break;
      case Exchange::TwoWords: w.exchange[lane] = w.at<std::uint64_t>(slot)[lane]; break;
      default: w.exchange[lane] = ((w.predicate(slot) >> lane) & 1) ^ flip; break;
    }
  }
}

std::uint32_t waiting(const Warp& w, std::uint32_t members) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < w.splitCount; ++i) {
    if (w.splits[i].state != Split::State::AtSync) continue;
    for (std::uint32_t left = w.splits[i].lanes; left; left &= left - 1) {
      const int lane = std::countr_zero(left);
      if (w.members[lane] == members) result |= 1u << lane;
    }
  }
  return result;
}

/// Runs the operation of each waiting split for its part of the group and makes that part ready
/// behind it.
void complete(Warp& w, std::uint32_t group) {
  w.participants = group;
  for (std::uint32_t i = 0; i < w.splitCount; ++i) {
    Split& split = w.splits[i];
    const std::uint32_t part = split.lanes & group;
    if (split.state != Split::State::AtSync || part == 0) continue;
    w.enter(split.frame, part);
    split.at->inner(w, split.at, part);
    Split released = split;
    released.at = split.at + 1;
    released.lanes = part;
    released.state = Split::State::Ready;
    split.lanes &= ~part;
    if (split.lanes == 0) {
      split = released;
    } else {
      w.splits[w.splitCount++] = released;
    }
  }
}

}  // namespace

void Warp::completeGroups() {
  for (bool again = true; again;) {
    again = false;
    for (std::uint32_t i = 0; i < splitCount && !again; ++i) {
      if (splits[i].state != Split::State::AtSync) continue;
      for (std::uint32_t left = splits[i].lanes; left && !again; left &= left - 1) {
        const std::uint32_t wanted = members[std::countr_zero(left)],
                            group = waiting(*this, wanted);
        if (wanted & alive & ~group) continue;
        complete(*this, group);
        again = true;
      }
    }
  }
}

const Operation* convergeMembers(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t* wanted = w.at<std::uint32_t>(op->slot[Operation::kMembers]);
  const std::uint32_t first = wanted[std::countr_zero(mask)];
  bool uniform = true;
  for (std::uint32_t left = mask; left; left &= left - 1)
    uniform &= wanted[std::countr_zero(left)] == first;
  publish(w, op, mask);
  if (Checker* checker = w.block->run->checker) checker->mask(w, op, mask);
  if (uniform && (first & w.alive & ~mask) == 0) {
    w.participants = mask;
    return op->inner(w, op, mask);
  }
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    w.members[lane] = wanted[lane] | 1u << lane;
  }
  if (const std::uint32_t rest = w.active & ~mask) w.suspend(op + 1, rest);
  w.suspend(op, mask, Split::State::AtSync);
  w.completeGroups();
  return w.next();
}

}  // namespace simulator::ptx
