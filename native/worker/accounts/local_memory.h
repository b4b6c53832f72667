// Charges local memory of kernels. A context holds a block for every thread that can be resident on
// the GPU, sized by the stack limit or by the kernel that needs most: 20,000 bytes a thread are 5
// GiB on an H200. A stack limit of 4 KiB took 830,472,192 bytes there and 16 KiB took
// 4,152,360,960, which is for 270,336 threads what exceeds the default of 1,024 bytes (driver
// 580.159, 2026-11-23).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "driver.h"
#include "native/worker/accounts/context_owner.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Thread-safe.
class LocalMemory {
 public:
  /// Included in a context: the default stack limit.
  static constexpr std::uint64_t kProvided = 1024;

  LocalMemory(const Driver& driver, Quota& quota, ContextOwner owner)
      : driver_(driver), quota_(quota), owner_(std::move(owner)) {}

  /// Charges `bytesPerThread` of local memory in the current context. False if the quota has no
  /// room for it.
  bool reserve(std::uint64_t bytesPerThread);
  /// The same for a launch of a kernel, in the stream's context: a kernel of a library may run in a
  /// context that is not current.
  bool reserveFor(CUfunction function, CUstream stream);
  bool reserveFor(CUkernel kernel, CUstream stream);
  /// The same for a node of a graph; null: in the current context.
  bool reserveFor(CUfunction function, CUcontext context);
  bool reserveFor(CUkernel kernel, CUcontext context);
  void ended(CUcontext context);

 private:
  struct Reserved {
    std::uint64_t perThread = kProvided;
    std::uint64_t charged = 0;
  };
  bool reserve(CUcontext context, std::uint64_t bytesPerThread);
  CUcontext contextOf(CUstream stream) const;
  std::uint64_t residentThreads(CUcontext context) const;

  const Driver& driver_;
  Quota& quota_;
  const ContextOwner owner_;
  std::mutex mutex_;
  std::map<CUcontext, Reserved> contexts_;
};

}  // namespace worker
