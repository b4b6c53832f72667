// The contexts of a session. Each holds device memory before anything is allocated in it: the first on each GPU is provided for when the
// session starts, every further one counts.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <mutex>

#include "cuda_abi.h"
#include "native/worker/figures.h"
#include "native/worker/quota.h"

namespace worker {

/// Thread-safe.
class ContextAccount {
 public:
  /// `bytes`: what a context holds.
  ContextAccount(Quota& quota, Figures& figures, std::uint64_t bytes) : quota_(quota), figures_(figures), bytes_(bytes) {}

  /// `make` makes a context on the device, or gives one that is there already; CUDA_ERROR_OUT_OF_MEMORY when the quota has no room for it.
  CUresult make(CUdevice device, CUcontext* context, const std::function<CUresult()>& make);

  /// The context is gone, and what was allocated in it. Nothing happens for one that is not known.
  void ended(CUcontext context);
  /// How many have gone: what was registered in one went with it.
  unsigned endings() const { return endings_.load(std::memory_order_acquire); }

 private:
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
