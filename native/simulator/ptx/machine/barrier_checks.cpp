// The check of barriers, and the order that barriers give to accesses in the check of races.
#include <bit>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/machine/races.h"

namespace simulator::ptx {
namespace {

/// Key of a barrier in a launch: block and number. The key of a cluster's barrier has its first
/// block.
std::uint64_t meetingOf(const Block& block, unsigned id) { return block.index << 8 | id; }
std::uint64_t clusterMeeting(const Block& block) { return block.cluster.front()->index << 8 | 255; }

unsigned firstOf(std::uint32_t lanes) { return static_cast<unsigned>(std::countr_zero(lanes)); }

/// Places other than `op` at which lanes of this warp wait at the barrier.
const Split* elsewhere(const Warp& w, std::uint32_t id, const Operation* op) {
  for (std::uint32_t i = 0; i < w.splitCount; ++i) {
    const Split& split = w.splits[i];
    if (split.state == Split::State::AtBarrier && split.barrier == id && split.at != op)
      return &split;
  }
  return nullptr;
}

}  // namespace

void Checker::arrives(Warp& w, const Operation* op, std::uint32_t mask, std::uint32_t id,
                      std::uint32_t count) {
  if (races_ && id < w.block->barriers.size()) races_->bring(w, mask, meetingOf(*w.block, id));
  if (!checks().barriers) return;
  const std::string who = reports_.thread(w, firstOf(mask)), where = reports_.place(op);
  if (id >= w.block->barriers.size()) {
    reports_.report(op, nullptr, "barrier " + std::to_string(id) + " does not exist: there are 16",
                    {who + " arrives at " + where});
    return;
  }
  const Barrier& barrier = w.block->barriers[id];
  const std::string name = "barrier " + std::to_string(id);
  if (const Split* other = elsewhere(w, id, op)) {
    reports_.report(
        other->at, op, "divergent " + name + ": threads of one warp are at different instructions",
        {reports_.thread(w, firstOf(other->lanes)) + " waits at " + reports_.place(other->at),
         who + " arrives at " + where});
  }
  const std::uint32_t capacity = (w.block->threads + kLanes - 1) / kLanes * kLanes;
  if (count % kLanes != 0) {
    reports_.report(
        op, nullptr,
        name + " is given " + std::to_string(count) + " threads, which is not a multiple of 32",
        {who + " arrives at " + where});
  } else if (count > capacity) {
    reports_.report(op, nullptr,
                    name + " waits for " + std::to_string(count) + " threads, and the block has " +
                        std::to_string(w.block->threads),
                    {who + " arrives at " + where});
  } else if (barrier.arrived > 0 && barrier.expected != count) {
    const auto said = [](std::uint32_t threads) {
      return threads ? std::to_string(threads) + " threads" : std::string("all threads");
    };
    reports_.report(op, nullptr, name + " is given different counts",
                    {"it waits for " + said(barrier.expected),
                     who + " arrives at " + where + " with " + said(count)});
  }
}

void Checker::released(Block& block, unsigned id) {
  if (!races_) return;
  for (Warp& warp : block.warps) {
    for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
      const Split& split = warp.splits[i];
      if (split.state == Split::State::AtBarrier && split.barrier == id)
        races_->take(warp, split.lanes, meetingOf(block, id));
    }
  }
  races_->dissolve(meetingOf(block, id));
}

const Operation* checkedWarpBarrier(Warp& w, const Operation* op, std::uint32_t) {
  w.block->run->checker->races()->meet(w, w.participants);
  return op + 1;
}

void Checker::fenced(Warp& w, std::uint32_t mask) {
  if (races_) races_->fence(w, mask);
}

void Checker::mask(Warp& w, const Operation* op, std::uint32_t lanes) {
  if (!checks().barriers) return;
  const std::uint32_t* members = w.at<std::uint32_t>(op->slot[Operation::kMembers]);
  for (std::uint32_t left = lanes; left; left &= left - 1) {
    const unsigned lane = firstOf(left);
    if ((members[lane] >> lane) & 1) continue;
    char text[16];
    std::snprintf(text, sizeof text, "0x%x", members[lane]);
    reports_.report(
        op, nullptr,
        std::string("the mask ") + text + " of a warp-wide operation lacks the thread that runs it",
        {reports_.thread(w, lane) + " is lane " + std::to_string(lane) + " at " +
         reports_.place(op)});
    return;
  }
}

void Checker::clusterArrives(Warp& w, std::uint32_t mask) {
  if (races_) races_->bring(w, mask, clusterMeeting(*w.block));
}

void Checker::clusterReleased(Block& block) {
  if (!races_) return;
  for (Block* member : block.cluster) {
    for (Warp& warp : member->warps) {
      if (warp.alive) races_->take(warp, warp.alive, clusterMeeting(block));
    }
  }
  races_->dissolve(clusterMeeting(block));
}

void Checker::deadlock(const std::vector<std::unique_ptr<Block>>& cluster) {
  if (!checks().barriers) return;
  std::vector<std::string> details;
  const Operation* first = nullptr;
  for (const auto& block : cluster) {
    for (Warp& warp : block->warps) {
      for (std::uint32_t i = 0; i < warp.splitCount; ++i) {
        const Split& split = warp.splits[i];
        const bool same = first == split.at;
        if (!first) first = split.at;
        if (same || details.size() >= 8) continue;
        std::string line =
            reports_.thread(warp, firstOf(split.lanes)) + " waits at " + reports_.place(split.at);
        if (split.state == Split::State::AtBarrier) {
          const Barrier& barrier = block->barriers[split.barrier];
          const std::uint32_t wanted = barrier.expected ? barrier.expected : block->threads;
          line += ": " + std::to_string(barrier.arrived) + " of " + std::to_string(wanted) +
                  " threads are at barrier " + std::to_string(split.barrier);
        } else if (split.state == Split::State::AtSync) {
          line += ", for lanes of its warp that do not come";
        } else {
          line += ", for blocks of its cluster that do not come";
        }
        details.push_back(line);
      }
    }
    if (block->aliveThreads < block->threads) {
      details.push_back(std::to_string(block->threads - block->aliveThreads) + " of the block's " +
                        std::to_string(block->threads) + " threads have ended");
    }
  }
  reports_.report(first, nullptr, "threads wait for each other for ever", details);
}

}  // namespace simulator::ptx
