// Which blocks of managed memory that moves the program holds, and the locks that guard that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_abi.h"
#include "wire/managed_move.h"

namespace interposer {

inline constexpr std::uint64_t kMovingBlock = 64 << 10;

enum class Held : std::uint8_t {
  gpu,        ///< absent here
  read,       ///< both have it; read-only here
  written,    ///< the program has it
  submitted,  ///< absent here; on the way to the GPU, the file still has it
};

struct Moving {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  wire::ManagedPlace place = wire::ManagedPlace::none;
  bool ending = false;  ///< a thread frees it: no further work needs it
  std::vector<Held> blocks{};
  std::size_t next = 0;  ///< block behind those that came last, and
  std::size_t run = 1;   ///< how many came
  /// All blocks that the program holds are among [heldFrom, heldTo).
  std::size_t heldFrom = 0;
  std::size_t heldTo = 0;

  std::uint64_t at(std::size_t block) const { return std::min(begin + block * kMovingBlock, end); }
  std::size_t blockOf(std::uint64_t address) const { return (address - begin) / kMovingBlock; }
  void set(std::size_t first, std::size_t last, Held as) {
    std::fill(blocks.begin() + first, blocks.begin() + last, as);
  }
  void give(std::size_t first, std::size_t last, Held as) {
    set(first, last, as);
    heldFrom = heldTo == 0 ? first : std::min(heldFrom, first);
    heldTo = std::max(heldTo, last);
  }
};
using MovingPointer = std::shared_ptr<Moving>;

struct MovingState {
  /// Held by those that send pages to the GPU. Never held during a call that takes a place in the
  /// order of calls: the GPU's work may wait for a thread that is about to submit.
  std::mutex sending;
  /// Guards the rest. Never held during a call that other threads could delay: these may wait for
  /// a page.
  std::mutex mutex;
  std::map<std::uint64_t, MovingPointer> all;
};

MovingState& movingState();

/// The memory around an address; null: none. Call it under the mutex.
MovingPointer findMoving(std::uint64_t address);

/// Starts the thread that answers the program's accesses to absent pages, at the first call. False
/// if the system does not offer what it needs: then no memory may move.
bool faultsAnswered();

/// Runs before work is submitted, as beforeWork.
CUresult moveAllToGpu();

}  // namespace interposer
