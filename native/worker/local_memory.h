// Local memory of kernels against the quota. A context keeps a piece for every thread that can be resident on the GPU, as large as the
// stack limit or the most demanding kernel launched in it needs: 20,000 bytes a thread are 5 GiB on an H200 (measured; seen to be just
// that).
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver.h"
#include "native/worker/quota.h"

namespace worker {

/// Thread-safe.
class LocalMemory {
 public:
  /// A context's own: what its stack limit is by default.
  static constexpr std::uint64_t kProvided = 1024;

  LocalMemory(const Driver& driver, Quota& quota) : driver_(driver), quota_(quota) {}

  /// The current context is about to have so many bytes for each thread. False when the quota has no room for that.
  bool reserve(std::uint64_t bytesPerThread);
  /// The same for the launch of a kernel.
  bool reserveFor(CUfunction function);
  bool reserveFor(CUkernel kernel);
  void ended(CUcontext context);

 private:
  struct Reserved {
    std::uint64_t perThread = kProvided;
    std::uint64_t charged = 0;
  };
  std::uint64_t residentThreads() const;

  const Driver& driver_;
  Quota& quota_;
  std::mutex mutex_;
  std::map<CUcontext, Reserved> contexts_;
};

}  // namespace worker
