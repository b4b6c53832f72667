#include "native/simulator/ptx/machine/control.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <thread>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"

namespace simulator::ptx {
namespace {

const Operation* targetOf(Warp& w, std::uint32_t index) {
  return w.frame->code->operations.data() + index;
}

}  // namespace

const Operation* jump(Warp& w, const Operation* op, std::uint32_t) {
  return w.arrive(targetOf(w, op->target));
}

const Operation* branch(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::uint32_t rest = w.active & ~mask;
  if (rest == 0) return w.arrive(targetOf(w, op->target));
  if (mask == 0) return w.arrive(op + 1);
  w.suspend(targetOf(w, op->target), mask);
  w.suspend(op + 1, rest);
  --w.budget;
  return w.next();
}

const Operation* branchByTable(Warp& w, const Operation* op, std::uint32_t mask) {
  const std::vector<std::uint32_t>& table = w.frame->code->tables[op->target];
  const std::uint32_t* index = w.at<std::uint32_t>(op->slot[1]);
  if (const std::uint32_t rest = w.active & ~mask) w.suspend(op + 1, rest);
  for (std::uint32_t left = mask; left;) {
    const std::uint32_t wanted = index[std::countr_zero(left)];
    std::uint32_t same = 0;
    for (unsigned lane = 0; lane < kLanes; ++lane)
      same |= ((left >> lane) & (index[lane] == wanted ? 1u : 0u)) << lane;
    if (wanted >= table.size()) return w.fault(CUDA_ERROR_INVALID_PC, op);
    w.suspend(targetOf(w, table[wanted]), same);
    left &= ~same;
  }
  --w.budget;
  return w.next();
}

const Operation* exitThread(Warp& w, const Operation* op, std::uint32_t mask) {
  return w.exitLanes(mask, op + 1);
}

const Operation* trap(Warp& w, const Operation* op, std::uint32_t) {
  return w.fault(CUDA_ERROR_LAUNCH_FAILED, op);
}

const Operation* illegalAddress(Warp& w, const Operation* op, std::uint32_t) {
  return w.fault(CUDA_ERROR_ILLEGAL_ADDRESS, op);
}

const Operation* nothing(Warp&, const Operation* op, std::uint32_t) { return op + 1; }

const Operation* fence(Warp& w, const Operation* op, std::uint32_t mask) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  w.budget -= 4;
  if (Checker* checker = w.block->run->checker) checker->fenced(w, mask);
  return op + 1;
}

// Between nothing and twice what was asked for, and at most a millisecond, as PTX has it. What the
// system would oversleep only yields.
const Operation* sleepNanoseconds(Warp& w, const Operation* op, std::uint32_t mask) {
  constexpr std::uint32_t kShortest = 100'000, kLongest = 1'000'000;
  std::uint32_t asked = 0;
  for (std::uint32_t left = mask; left; left &= left - 1)
    asked = std::max(asked, w.at<std::uint32_t>(op->slot[1])[std::countr_zero(left)]);
  w.spin();
  if (asked < kShortest)
    std::this_thread::yield();
  else
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(asked, kLongest)));
  return op + 1;
}

const Operation* dynamicSharedAddress(Warp& w, const Operation* op, std::uint32_t mask) {
  const Run& run = *w.block->run;
  const std::uint64_t address =
      ((run.staticSharedBytes + 15) & ~15u) + static_cast<std::uint64_t>(op->immediate);
  for (std::uint32_t left = mask; left; left &= left - 1)
    w.at<std::uint64_t>(op->slot[0])[std::countr_zero(left)] = address;
  return op + 1;
}

}  // namespace simulator::ptx
