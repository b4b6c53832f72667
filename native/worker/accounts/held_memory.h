// Compares the memory that this process holds, as NVML reports it, with its charges, and charges
// the rest. The driver loads code at its first use; how much memory that takes cannot be read from
// the image.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "driver.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Loads NVML once. Call it before the process has a context: memory that NVML already lists under
/// this pid belongs to another process. Returns a sentence if the comparison is impossible.
std::string openHeldMemory(const std::string& library);

/// Gives up what NVML has of the GPUs, and takes it again.
void closeHeldMemory();
void reopenHeldMemory();

/// Thread-safe.
class HeldMemory {
 public:
  /// Tolerance: the driver keeps a reserve of memory for code, and allocates in pages of 2 MiB.
  static constexpr std::uint64_t kMargin = std::uint64_t{32} << 20;

  HeldMemory(const Driver& driver, Quota& quota) : driver_(driver), quota_(quota) {}

  void contextMade(CUcontext context);
  void contextEnded(CUcontext context);

  /// Whether this is the first use of an image (the handle of a library or a module) in the current
  /// context.
  bool firstUse(std::uint64_t image);

  /// Free memory of the current GPU, which all its processes share, and charges.
  struct Reading {
    std::uint64_t free = 0;
    std::uint64_t charged = 0;
    std::uint64_t calls = 0;  ///< kernelCalls
  };
  /// Cheap if the driver has not called the kernel since the last reading, at most 1 ms ago.
  Reading read();
  /// Whether more memory was taken since `before` than was charged. Then settle() finds out by
  /// whom.
  bool grew(const Reading& before);

  /// Charges what this process holds beyond its charges, or refunds what it does not hold any more.
  /// False when the quota has no room: the bytes are not charged then.
  bool settle();
  /// An image was unloaded: part of what settle() charged may be free.
  void imageEnded();

 private:
  /// Age of a reading beyond which other processes may have changed too much. To read takes 5 us
  /// (H200, 2026-11-27).
  static constexpr std::uint64_t kFreshNanoseconds = 1'000'000;

  /// The last reading of free memory.
  struct Latest {
    CUdevice device = -1;
    std::uint64_t free = 0;
    std::uint64_t calls = 0;
    std::uint64_t when = 0;
  };
  std::uint64_t provided() const;
  std::uint64_t freeOf(CUdevice device);

  const Driver& driver_;
  Quota& quota_;
  std::mutex mutex_;
  std::map<CUcontext, std::uint64_t> contexts_;  ///< bytes that each holds without a charge
  std::set<std::pair<std::uint64_t, CUcontext>> used_;
  std::uint64_t charged_ = 0;  ///< by settle()
  Latest latest_;
};

}  // namespace worker
