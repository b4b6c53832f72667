// A warp while it runs: 32 lanes, their registers, and how they have drifted apart.
#pragma once

#include <array>
#include <cstdint>

#include "cuda_abi.h"
#include "native/simulator/ptx/machine/operation.h"

namespace simulator::ptx {

struct Block;
struct Multiprocessor;

/// Generic addresses of what is not device memory lie above every address of a process.
inline constexpr unsigned kWindowShift = 48;
inline constexpr std::uint64_t kSharedWindow = 1ull << kWindowShift;
inline constexpr std::uint64_t kLocalWindow = 2ull << kWindowShift;
inline constexpr std::uint64_t kParameterWindow = 3ull << kWindowShift;
inline constexpr std::uint64_t kCodeWindow = 4ull << kWindowShift;
inline constexpr std::uint64_t kWindowOffset = kSharedWindow - 1;
/// Within the shared window: the block's rank in its cluster, above 16 MiB of offset.
inline constexpr unsigned kRankShift = 24;

/// One activation of a function by some lanes of a warp. Its registers follow it in memory.
struct Frame {
  const Code* code;
  Frame* parent;
  const Operation* returnTo;
  const CallSite* site;
  std::uint32_t depth;
  std::uint32_t lanes;      ///< inside this activation
  std::uint32_t localBase;  ///< of its variables in each lane's local memory
  std::uint32_t localTop;
  Frame* previous;  ///< in the list of all frames of the block
  Frame* following;
  std::uint8_t* registers() { return reinterpret_cast<std::uint8_t*>(this) + kHeader; }
  static constexpr std::size_t kHeader = 64;
};
static_assert(sizeof(Frame) <= Frame::kHeader);

/// Lanes that are at the same place of the same activation, and whether they may go on.
struct Split {
  enum class State : std::uint8_t { Ready, AtBarrier, AtSync, AtClusterBarrier };
  const Operation* at;
  Frame* frame;
  std::uint32_t lanes;
  State state;
  std::uint8_t barrier;  ///< AtBarrier: which
};

struct Warp {
  // The members that operations use most.
  std::uint8_t* bank[2];
  std::uint32_t active;       ///< lanes that run now
  std::uint32_t carry;        ///< CC.CF of each lane
  const Operation* frontier;  ///< the first place at which other lanes wait: arriving there, the
                              ///< warp is rescheduled
  std::int32_t
      turn;  ///< operations left before other warps of the block get their turn; a load ends it
  std::int32_t budget;     ///< arrivals left before other blocks get theirs
  std::int32_t patience;   ///< spins left before diverged lanes get their turn
  std::uint32_t favoured;  ///< lanes that have their turn because patience had ended, until the
                           ///< warp's turn is over
  std::uint32_t rotation;  ///< where to look for the next ones
  Frame* frame;
  const Operation* paused;  ///< where the running lanes go on when the warp has its next turn;
                            ///< null: next() chooses

  std::uint32_t alive;  ///< lanes that have not exited
  std::uint32_t index;  ///< in the block
  Block* block;
  Multiprocessor* processor;

  // Memory.
  std::uint8_t* shared;
  std::uint64_t sharedBytes;
  std::uint8_t* local;
  std::uint32_t localStride;  ///< from lane to lane
  std::uint32_t localBytes;   ///< of one lane
  const std::uint8_t* parameters;
  std::uint32_t parameterBytes;

  // Lanes that wait or were left behind; the running ones are not among them.
  std::uint32_t splitCount;
  std::array<Split, kLanes> splits;

  // Operands of the lanes in a .sync operation.
  std::uint32_t participants;  ///< lanes of the group that is now complete
  alignas(64) std::uint64_t exchange[kLanes];
  alignas(64) std::uint32_t members[kLanes];

  /// Operands of an operation that has more of them than slots: texture.h.
  static constexpr unsigned kStaged = 10;
  alignas(64) std::uint32_t staged[kStaged][kLanes];

  std::uint32_t clusterPhase[kLanes];
  alignas(64) std::uint32_t tid[3][kLanes];

  template <class T>
  [[gnu::always_inline]] T* at(Slot slot) {
    return reinterpret_cast<T*>(bank[slot >> 31] + (slot & ~kConstantBank));
  }
  [[gnu::always_inline]] std::uint32_t& predicate(Slot slot) { return *at<std::uint32_t>(slot); }
  [[gnu::always_inline]] void assignPredicate(Slot slot, std::uint32_t bits, std::uint32_t mask) {
    std::uint32_t& p = predicate(slot);
    p = (p & ~mask) | (bits & mask);
  }

  /// The running lanes come to a place where others may wait.
  [[gnu::always_inline]] const Operation* arrive(const Operation* at) {
    if (at < frontier && --budget > 0) [[likely]]
      return at;
    return arriveSlowly(at);
  }
  [[gnu::always_inline]] void spin() {
    budget -= 16;
    if (splitCount) --patience;
  }

  // split.cpp
  const Operation* arriveSlowly(const Operation* at);
  void suspend(const Operation* at, std::uint32_t lanes, Split::State state = Split::State::Ready);
  /// Suspends the lanes that paused, before another warp changes the splits of this one.
  void park();
  void suspendIn(Frame* where, const Operation* at, std::uint32_t lanes);
  /// Chooses the lanes that run next and merges those at the same place; null when none is ready.
  const Operation* next();
  void enter(Frame* target, std::uint32_t lanes);
  const Operation* exitLanes(std::uint32_t lanes, const Operation* rest);
  bool ready() const;

  // call.cpp
  Frame* open(const Code& code, Frame* parent, std::uint32_t lanes);
  void leaveFrames(Frame* from, std::uint32_t lanes);
  void close(Frame* closed);

  // sync.cpp
  void completeGroups();

  /// Ends the launch with `result`; answers null, for handlers to return.
  const Operation* fault(CUresult result, const Operation* at);
};

}  // namespace simulator::ptx
