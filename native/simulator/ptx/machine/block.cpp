// A thread block: its warps, its shared and local memory, and the turns that its warps take.
#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>

#include "native/simulator/ptx/machine/multiprocessor.h"
#include "native/simulator/ptx/program/program.h"

namespace simulator::ptx {
namespace {

constexpr std::int32_t kBudget = 4096;

std::uint64_t runWarp(Warp& w) {
  std::uint64_t executed = 0;
  w.budget = kBudget;
  w.favoured = 0;
  for (const Operation* op = w.next(); op;) {
    std::uint32_t mask = w.active;
    if (op->guard != Operation::kNoGuard) {
      const std::uint32_t guard = w.predicate(op->guard);
      mask &= op->flags & Operation::kNegatedGuard ? ~guard : guard;
      if (mask == 0 && !(op->flags & Operation::kEvenWithoutLanes)) {
        ++op;
        continue;
      }
    }
    executed += static_cast<std::uint64_t>(std::popcount(mask));
    op = op->run(w, op, mask);
  }
  return executed;
}

}  // namespace

Block::~Block() {
  if (local) munmap(local, localMapped);
}

void Block::prepareMemory() {
  sharedStorage.resize(run->sharedMapped() / 8 + 4);
  std::fill(sharedStorage.begin(), sharedStorage.end(), 0);
  void* start = sharedStorage.data();
  std::size_t space = sharedStorage.size() * 8;
  shared = static_cast<std::uint8_t*>(std::align(16, run->sharedMapped(), start, space));
  const std::size_t needed = static_cast<std::size_t>(run->localStride) * kLanes * ((threads + kLanes - 1) / kLanes);
  if (needed <= localMapped) return;
  if (local) munmap(local, localMapped);
  localMapped = needed;
  void* mapped = mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  local = static_cast<std::uint8_t*>(mapped);
}

void Block::prepareWarp(Warp& warp, std::uint32_t number) {
  const auto& dims = run->launch.block;
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t thread = number * kLanes + lane;
    warp.tid[0][lane] = thread % dims[0];
    warp.tid[1][lane] = thread / dims[0] % dims[1];
    warp.tid[2][lane] = thread / dims[0] / dims[1];
    if (thread < threads) lanes |= 1u << lane;
  }
  warp.index = number;
  warp.block = this;
  warp.processor = processor;
  warp.alive = lanes;
  warp.carry = warp.splitCount = warp.rotation = 0;
  warp.patience = 1;
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
  const auto &grid = launch.launch.grid, &dims = launch.launch.block, &clusterDims = launch.launch.cluster;
  rank = static_cast<std::uint32_t>(number % launch.blocksPerCluster);
  std::uint64_t clusterIndex = number / launch.blocksPerCluster;
  std::uint32_t within = rank;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t clusters = grid[axis] / clusterDims[axis];
    position[axis] = static_cast<std::uint32_t>(clusterIndex % clusters) * clusterDims[axis] + within % clusterDims[axis];
    clusterIndex /= clusters;
    within /= clusterDims[axis];
  }
  threads = aliveThreads = dims[0] * dims[1] * dims[2];
  clusterArrived = clusterPhase = 0;
  barriers.fill(Barrier{});
  prepareMemory();
  warps.resize((threads + kLanes - 1) / kLanes);
  for (std::uint32_t i = 0; i < warps.size(); ++i) prepareWarp(warps[i], i);
}

bool Block::step() {
  bool moved = false;
  for (Warp& warp : warps) {
    if (warp.alive == 0 || !warp.ready()) continue;
    moved = true;
    processor->executed += runWarp(warp);
    if (run->stopped()) break;
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
