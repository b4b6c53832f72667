// State of a host thread that runs blocks of a launch, with the blocks that it holds.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native/simulator/engine.h"
#include "native/simulator/memory_user.h"
#include "native/simulator/ptx/machine/warp.h"
#include "native/simulator/ptx/runtime/family.h"

namespace simulator::ptx {

class Checker;
class Children;
class LinkedProgram;

/// Shared memory behind the program's own, for cooperative groups larger than a warp:
/// %reserved_smem_offset_*.
inline constexpr std::uint32_t kReservedShared = 1024;
/// A GPU allocates a block's shared memory in this unit, and only an access behind it is a fault.
inline constexpr std::uint32_t kSharedUnit = 128;

/// One grid while it runs, shared by the threads that work on it.
struct Run {
  const Launch& launch;
  const Environment& environment;
  const LinkedProgram& program;
  const Code& kernel;
  Family& family;
  unsigned depth = 0;        ///< of launches by kernels; 0: launched by the host
  std::uint64_t blocks = 1;  ///< in the grid
  std::uint32_t blocksPerCluster = 1;
  std::uint32_t staticSharedBytes = 0;
  std::uint32_t sharedBytes = 0;  ///< static and dynamic
  std::uint32_t localStride = 0;
  std::uint32_t localBytes = 0;
  std::uint64_t gridId = 0;
  std::uint32_t multiprocessors = 1;
  Checker* checker = nullptr;  ///< null: no check is on
  std::atomic<std::uint64_t> claimed{0};
  alignas(8) std::uint8_t gridWorkspace[32] = {};  ///< of grid.sync(), named by %envreg1 and 2

  std::mutex textMutex;
  std::map<std::uint64_t, std::string>
      text;  ///< what blocks printed, to be delivered in their order
  std::size_t textBytes = 0;

  /// Bytes that an access may touch: the reserved ones too, where the kernel asks for them. Without
  /// a check they end at a whole unit.
  std::uint32_t sharedMapped() const {
    const std::uint32_t own =
        kernel.usesReserved ? ((sharedBytes + 15) & ~15u) + kReservedShared : sharedBytes;
    return checker ? own : (own + kSharedUnit - 1) & ~(kSharedUnit - 1);
  }
  void print(std::uint64_t block, std::string_view line);
  void deliver();
  void fail(CUresult code);
  bool stopped() const { return family.stopped(); }
  /// Work that its threads gave to streams.
  Children& children();

  std::mutex childrenMutex;
  std::unique_ptr<Children> ownChildren;  ///< null: none of its threads used a stream
};

/// Runs a grid to its end, with all that it launches. A fault ends the family.
void runGrid(Family& family, const Launch& launch, unsigned depth);

/// Coordinates in the grid of the block with this number.
std::array<std::uint32_t, 3> blockPosition(const Run& run, std::uint64_t number);

struct Barrier {
  std::array<std::uint32_t, kLanes> lanes{};  ///< by warp: lanes that arrived
  std::uint32_t arrived = 0;                  ///< how many
  std::uint32_t expected = 0;                 ///< threads; 0: all of the block
  std::uint32_t truths = 0;                   ///< arrived lanes whose predicate was true (bar.red)
};

/// Memory of activations that ended, so that the next ones need no allocation.
class SpareFrames {
 public:
  ~SpareFrames();
  /// Memory of that many bytes, aligned to 64.
  void* take(std::size_t bytes);
  void giveBack(void* memory, std::size_t bytes);

 private:
  struct Spare {
    void* memory;
    std::size_t bytes;
  };
  std::vector<Spare> spares_;
};

struct Block {
  Run* run = nullptr;
  Multiprocessor* processor = nullptr;
  std::uint64_t index = 0;
  std::array<std::uint32_t, 3> position{};
  std::uint32_t threads = 0;
  std::uint32_t aliveThreads = 0;
  std::uint32_t rank = 0;  ///< in its cluster
  std::vector<Warp> warps;
  Frame* frames = nullptr;  ///< all activations of its warps
  SpareFrames spareFrames;
  std::vector<Block*> cluster;  ///< the blocks of its cluster, by rank
  std::uint8_t* shared = nullptr;
  std::array<Barrier, 16> barriers;
  std::vector<std::uint64_t> sharedStorage;
  std::uint8_t* local = nullptr;  ///< mapped
  std::size_t localMapped = 0;
  std::uint32_t clusterArrived = 0;  ///< lanes at the cluster's barrier, in
  std::uint32_t clusterPhase = 0;    ///< this turn of it
  /// Result of cudaGetLastError for each thread. Empty: no call failed.
  std::vector<std::uint32_t> runtimeErrors;

  ~Block();
  void begin(Run& run, Multiprocessor& processor, std::uint64_t index);
  /// Runs the warps in turns until each has used its budget or waits. False when no warp could do
  /// anything.
  bool step();
  bool finished() const { return aliveThreads == 0; }
  void lanesExited(std::uint32_t lanes);
  /// Frees what a block that will not end holds: after a fault.
  void abandon();

  // barrier.cpp
  bool complete(const Barrier& barrier) const;
  void release(unsigned id);
  void releaseCompleted();
  void completeCluster();

 private:
  void prepareMemory();
  void prepareWarp(Warp& warp, std::uint32_t index);
};

struct Range {
  std::uint64_t begin = 0, end = 0;
};

struct Multiprocessor {
  static constexpr std::size_t kRanges = 64;
  Run* run = nullptr;
  std::uint32_t index = 0;
  const AddressSpace* memory = nullptr;
  std::array<Range, kRanges> ranges{};       ///< the allocation that an instruction touched last
  std::optional<MemoryUser> user;            ///< while it works on a launch, and is not paused
  std::uint64_t executed = 0;                ///< thread instructions
  std::vector<std::unique_ptr<Block>> idle;  ///< to be begun again
  /// Works on the launch until no block is left to begin and those begun are done.
  void work(Run& launch);
  /// Called between instructions.
  void forgetRevoked() {
    if (user->revoked()) [[unlikely]]
      ranges.fill(Range{});
  }
  /// Runs other work on its thread, during an instruction that has no checked addresses in use.
  template <class Other>
  auto paused(Other&& other) {
    user.reset();
    const auto result = other();
    user.emplace();
    ranges.fill(Range{});
    return result;
  }

 private:
  using Cluster = std::vector<std::unique_ptr<Block>>;
  bool claim(std::vector<Cluster>& resident);
  bool stepAll(std::vector<Cluster>& resident);
};

}  // namespace simulator::ptx
