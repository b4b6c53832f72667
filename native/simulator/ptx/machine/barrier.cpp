// bar.sync, bar.arrive, bar.red, barrier.cluster.
#include <bit>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/control.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

constexpr unsigned kNumber = 1, kCount = 2, kPredicate = 3;

std::uint32_t uniform(Warp& w, const Operation* op, unsigned slot, std::uint32_t mask) {
  return w.at<std::uint32_t>(op->slot[slot])[std::countr_zero(mask)];
}

/// Counts the lanes in; false for a barrier that does not exist.
bool arriveAt(Warp& w, const Operation* op, std::uint32_t mask, std::uint32_t& id) {
  id = uniform(w, op, kNumber, mask);
  const std::uint32_t count = op->uses & (1 << kCount) ? uniform(w, op, kCount, mask) : 0;
  if (Checker* checker = w.block->run->checker) checker->arrives(w, op, mask, id, count);
  if (id >= w.block->barriers.size()) return false;
  Barrier& barrier = w.block->barriers[id];
  barrier.lanes[w.index] |= mask;
  barrier.arrived += static_cast<std::uint32_t>(std::popcount(mask));
  if (op->uses & (1 << kCount)) barrier.expected = count;
  if (op->uses & (1 << kPredicate)) {
    const std::uint32_t truth =
        w.predicate(op->slot[kPredicate]) ^ (op->flags & Operation::kNegatedSource ? ~0u : 0);
    barrier.truths += static_cast<std::uint32_t>(std::popcount(truth & mask));
  }
  return true;
}

void assignReduction(Warp& w, const Split& split, const Barrier& barrier) {
  const Operation* op = split.at;
  w.enter(split.frame, split.lanes);
  switch (static_cast<Reduction>(op->detail)) {
    case Reduction::None: break;
    case Reduction::Popc:
      for (std::uint32_t left = split.lanes; left; left &= left - 1) {
        w.at<std::uint32_t>(op->slot[0])[std::countr_zero(left)] = barrier.truths;
      }
      break;
    case Reduction::And:
      w.assignPredicate(op->slot[0], barrier.truths == barrier.arrived ? ~0u : 0, split.lanes);
      break;
    case Reduction::Or:
      w.assignPredicate(op->slot[0], barrier.truths ? ~0u : 0, split.lanes);
      break;
  }
}

}  // namespace

bool Block::complete(const Barrier& barrier) const {
  if (barrier.arrived == 0) return false;
  if (barrier.expected == 0) {
    if (barrier.arrived < aliveThreads) return false;
    for (const Warp& warp : warps) {
      if (warp.alive & ~barrier.lanes[warp.index]) return false;
    }
    return true;
  }
  std::uint32_t threads = 0;
  for (const Warp& warp : warps) {
    if (barrier.lanes[warp.index])
      threads += static_cast<std::uint32_t>(std::popcount(barrier.lanes[warp.index] | ~warp.alive));
  }
  return threads >= barrier.expected;
}

void Block::release(unsigned id) {
  if (run->checker) run->checker->released(*this, id);
  for (Warp& warp : warps) {
    for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
      Split& split = warp.splits[i];
      if (split.state != Split::State::AtBarrier || split.barrier != id) continue;
      warp.park();
      assignReduction(warp, split, barriers[id]);
      split.state = Split::State::Ready;
      ++split.at;
    }
  }
  barriers[id] = Barrier{};
}

void Block::releaseCompleted() {
  for (unsigned id = 0; id < barriers.size(); ++id) {
    if (complete(barriers[id])) release(id);
  }
}

const Operation* barrierWait(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint32_t id = 0;
  if (!arriveAt(w, op, mask, id)) return w.fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, op);
  if (const std::uint32_t rest = w.active & ~mask) w.suspend(op + 1, rest);
  w.suspend(op, mask, Split::State::AtBarrier);
  w.splits[w.splitCount - 1].barrier = static_cast<std::uint8_t>(id);
  if (w.block->complete(w.block->barriers[id])) w.block->release(id);
  return w.next();
}

const Operation* barrierArrive(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint32_t id = 0;
  if (!arriveAt(w, op, mask, id)) return w.fault(CUDA_ERROR_ILLEGAL_INSTRUCTION, op);
  w.suspend(op + 1, w.active);
  if (w.block->complete(w.block->barriers[id])) w.block->release(id);
  return w.next();
}

void Block::completeCluster() {
  for (const Block* member : cluster) {
    if (member->clusterArrived < member->aliveThreads) return;
  }
  if (run->checker) run->checker->clusterReleased(*this);
  for (Block* member : cluster) {
    member->clusterArrived = 0;
    ++member->clusterPhase;
    for (Warp& warp : member->warps) {
      for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
        Split& split = warp.splits[i];
        if (split.state != Split::State::AtClusterBarrier) continue;
        warp.park();
        split.state = Split::State::Ready;
        ++split.at;
      }
    }
  }
}

const Operation* clusterBarrierArrive(Warp& w, const Operation* op, std::uint32_t mask) {
  for (std::uint32_t left = mask; left; left &= left - 1)
    w.clusterPhase[std::countr_zero(left)] = w.block->clusterPhase;
  w.block->clusterArrived += static_cast<std::uint32_t>(std::popcount(mask));
  if (Checker* checker = w.block->run->checker) checker->clusterArrives(w, mask);
  w.suspend(op + 1, w.active);
  w.block->completeCluster();
  return w.next();
}

const Operation* clusterBarrierWait(Warp& w, const Operation* op, std::uint32_t mask) {
  std::uint32_t waiting = 0;
  for (std::uint32_t left = mask; left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    if (w.clusterPhase[lane] == w.block->clusterPhase) waiting |= 1u << lane;
  }
  if (waiting == 0) return op + 1;
  if (const std::uint32_t rest = w.active & ~waiting) w.suspend(op + 1, rest);
  w.suspend(op, waiting, Split::State::AtClusterBarrier);
  return w.next();
}

}  // namespace simulator::ptx
