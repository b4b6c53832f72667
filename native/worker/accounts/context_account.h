// Charges the contexts of a session. A context holds device memory before any allocation. The first
// context on each GPU is provided for when the session starts; further ones are charged.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "cuda_abi.h"
#include "native/worker/accounts/quota.h"
#include "native/worker/reports/figures.h"

namespace worker {

/// Thread-safe.
class ContextAccount {
 public:
  /// `bytes`: device memory of one context.
  ContextAccount(Quota& quota, Figures& figures, std::uint64_t bytes)
      : quota_(quota), figures_(figures), bytes_(bytes) {}

  /// `make` makes a context on the device, or gives one that is there already;
  /// CUDA_ERROR_OUT_OF_MEMORY when the quota has no room for it.
  CUresult make(CUdevice device, CUcontext* context, const std::function<CUresult()>& make);

  /// The context has ended, with all its allocations. Unknown contexts are ignored.
  void ended(CUcontext context);
  /// A green context has ended, and its allocations have not.
  void detached(CUcontext context);
  /// How many contexts have ended. Registrations in a context end with it.
  unsigned endings() const { return endings_.load(std::memory_order_acquire); }

 private:
  void refund(CUcontext context);
  struct Context {
    CUdevice device;
    std::uint64_t charged;
  };

  Quota& quota_;
  Figures& figures_;
  const std::uint64_t bytes_;
  std::mutex mutex_;
  std::map<CUcontext, Context> contexts_;
  std::atomic<unsigned> endings_{0};
};

}  // namespace worker
