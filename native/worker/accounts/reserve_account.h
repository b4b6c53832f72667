// Charges what contexts reserve on the device: the heap of malloc in kernels, the buffer of printf,
// and the buffers of pending device-side launches.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "driver.h"
#include "native/worker/accounts/context_owner.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Thread-safe. Charges last until the context ends, because the driver keeps the memory until
/// then. Exception: lowering the limit on pending launches frees memory.
class ReserveAccount {
 public:
  /// `heap`: bytes that the heap takes at its default size.
  ReserveAccount(const Driver& driver, Quota& quota, std::uint64_t heap, ContextOwner owner)
      : driver_(driver), quota_(quota), heap_(heap), owner_(std::move(owner)) {}

  /// cuCtxSetLimit in the current context. Charges what the limit takes beyond its default, even if
  /// it is never used. Returns CUDA_ERROR_OUT_OF_MEMORY if the quota has no room, and
  /// CUDA_ERROR_NOT_SUPPORTED for raising a limit that isUnknown(). CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH
  /// is CUDA_ERROR_UNSUPPORTED_LIMIT.
  CUresult setLimit(CUlimit limit, std::size_t value);
  /// Whether the memory cost of raising this limit is unknown.
  static bool isUnknown(CUlimit limit);

  /// Charges the heap of the current context. Call before loading code that may call malloc: the
  /// driver takes the heap with the first such code (seen with driver 580). False if the quota has
  /// no room.
  bool takeHeap();

  void ended(CUcontext context);

 private:
  struct Limit {
    std::uint64_t initial = 0;
    std::uint64_t charged = 0;
  };
  struct Context {
    std::map<CUlimit, Limit> limits;
    bool heap = false;
  };
  Context& current();
  CUresult setPendingLaunches(Limit& reserved, std::size_t value);

  const Driver& driver_;
  Quota& quota_;
  const std::uint64_t heap_;
  const ContextOwner owner_;
  std::mutex mutex_;
  std::map<CUcontext, Context> contexts_;
};

}  // namespace worker
