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

  /// Free memory of the GPU, and charges. Cheap; covers all processes of the GPU.
  struct Reading {
    std::uint64_t free = 0;
    std::uint64_t charged = 0;
  };
  Reading read() const;
  /// Whether more memory was taken since `before` than was charged. Then settle() finds out by
  /// whom.
  bool grew(const Reading& before) const;

  /// Charges what this process holds beyond its charges, or refunds what it does not hold any more.
  /// False when the quota has no room: the bytes are not charged then.
  bool settle();
  /// An image was unloaded: part of what settle() charged may be free.
  void imageEnded();

 private:
  std::uint64_t provided() const;

  const Driver& driver_;
  Quota& quota_;
  std::mutex mutex_;
  std::map<CUcontext, std::uint64_t> contexts_;  ///< bytes that each holds without a charge
  std::set<std::pair<std::uint64_t, CUcontext>> used_;
  std::uint64_t charged_ = 0;  ///< by settle()
};

}  // namespace worker
