// A thread block: its warps, its shared and local memory, and the turns that its warps take.
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>
#include <utility>

#include "native/simulator/ptx/machine/checks.h"
#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"

namespace simulator::ptx {
namespace {

/// Arrivals that a warp has before other blocks get their turn.
constexpr std::int32_t kBudget = 4096;
/// Operations that a warp runs before the next one of its block does, as the schedulers of hardware
/// interleave warps.
constexpr std::int32_t kTurn = 32;

std::uint64_t runWarp(Warp& w) {
  std::uint64_t executed = 0;
  w.turn = kTurn;
  const Operation* op = w.paused ? std::exchange(w.paused, nullptr) : w.next();
  while (op) {
    std::uint32_t mask = w.active;
    if (op->guard != Operation::kNoGuard) {
      const std::uint32_t guard = w.predicate(op->guard);
      mask &= op->flags & Operation::kNegatedGuard ? ~guard : guard;
      if (mask == 0 && !(op->flags & Operation::kEvenWithoutLanes)) {
        ++op;
        continue;
      }
    }
    if (--w.turn < 0) {
      w.paused = op;
      break;
    }
    // A count is a call where the host's instruction set is not known.
    executed += mask == kAllLanes ? kLanes : static_cast<std::uint64_t>(std::popcount(mask));
    op = op->run(w, op, mask);
  }
  return executed;
}

}  // namespace

std::array<std::uint32_t, 3> blockPosition(const Run& run, std::uint64_t number) {
  const auto &grid = run.launch.grid, &clusterDims = run.launch.cluster;
  std::array<std::uint32_t, 3> result{};
  std::uint64_t cluster = number / run.blocksPerCluster;
  auto within = static_cast<std::uint32_t>(number % run.blocksPerCluster);
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t clusters = grid[axis] / clusterDims[axis];
    result[axis] = static_cast<std::uint32_t>(cluster % clusters) * clusterDims[axis] +
                   within % clusterDims[axis];
    cluster /= clusters;
    within /= clusterDims[axis];
  }
  return result;
}

Block::~Block() {
  if (local) munmap(local, localMapped);
}

void Block::prepareMemory() {
  sharedStorage.resize(run->sharedMapped() / 8 + 4);
  std::fill(sharedStorage.begin(), sharedStorage.end(), 0);
  void* start = sharedStorage.data();
  std::size_t space = sharedStorage.size() * 8;
  shared = static_cast<std::uint8_t*>(std::align(16, run->sharedMapped(), start, space));
  const std::size_t needed =
      static_cast<std::size_t>(run->localStride) * kLanes * ((threads + kLanes - 1) / kLanes);
  if (needed <= localMapped) return;
  if (local) munmap(local, localMapped);
  localMapped = needed;
  void* mapped = mmap(nullptr, needed, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  local = static_cast<std::uint8_t*>(mapped);
}

void Block::prepareWarp(Warp& warp, std::uint32_t number) {
  const auto& dims = run->launch.block;
  const std::uint32_t first = number * kLanes;
  std::uint32_t x = first % dims[0], y = first / dims[0] % dims[1], z = first / dims[0] / dims[1];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    warp.tid[0][lane] = x;
    warp.tid[1][lane] = y;
    warp.tid[2][lane] = z;
    if (++x < dims[0]) continue;
    x = 0;
    if (++y < dims[1]) continue;
    y = 0;
    ++z;
  }
  const std::uint32_t left = threads - first;
  const std::uint32_t lanes = left >= kLanes ? kAllLanes : (1u << left) - 1;
  warp.index = number;
  warp.block = this;
  warp.processor = processor;
  warp.alive = lanes;
  warp.carry = warp.splitCount = warp.rotation = 0;
  warp.patience = 1;
  warp.paused = nullptr;
  warp.favoured = 0;
  warp.shared = shared;
  warp.sharedBytes = run->sharedMapped();
  warp.localStride = run->localStride;
  warp.localBytes = run->localBytes;
  warp.local = local + static_cast<std::size_t>(number) * kLanes * run->localStride;
  warp.parameters = reinterpret_cast<const std::uint8_t*>(run->launch.parameters.data());
  warp.parameterBytes = static_cast<std::uint32_t>(run->launch.parameters.size());
  std::memset(warp.exchange, 0, sizeof warp.exchange);
  std::memset(warp.clusterPhase, 0, sizeof warp.clusterPhase);
  Frame* root = warp.open(run->kernel, nullptr, lanes);
  warp.suspendIn(root, run->kernel.operations.data(), lanes);
}

void Block::begin(Run& launch, Multiprocessor& on, std::uint64_t number) {
  run = &launch;
  processor = &on;
  index = number;
  rank = static_cast<std::uint32_t>(number % launch.blocksPerCluster);
  position = blockPosition(launch, number);
  const auto& dims = launch.launch.block;
  threads = aliveThreads = dims[0] * dims[1] * dims[2];
  clusterArrived = clusterPhase = 0;
  barriers.fill(Barrier{});
  runtimeErrors.clear();
  prepareMemory();
  warps.resize((threads + kLanes - 1) / kLanes);
  for (std::uint32_t i = 0; i < warps.size(); ++i) prepareWarp(warps[i], i);
  if (launch.checker) launch.checker->blockBegins(*this);
}

bool Block::step() {
  bool moved = false;
  for (Warp& warp : warps) {
    warp.park();  // its budget ended in the middle of a turn
    warp.budget = kBudget;
    warp.favoured = 0;
  }
  for (bool again = true; again;) {
    again = false;
    for (Warp& warp : warps) {
      if (warp.budget <= 0 || !(warp.paused || warp.ready())) continue;
      processor->forgetRevoked();
      processor->executed += runWarp(warp);
      if (run->stopped()) return true;
      again = moved = true;
    }
  }
  return moved;
}

void Block::abandon() {
  while (frames) warps.front().close(frames);
  aliveThreads = 0;
}

void Block::lanesExited(std::uint32_t lanes) {
  aliveThreads -= static_cast<std::uint32_t>(std::popcount(lanes));
  if (aliveThreads > 0) releaseCompleted();
  if (cluster.size() > 1) completeCluster();
}

}  // namespace simulator::ptx
