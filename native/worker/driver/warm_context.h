// The primary context of the first device, which a warm worker makes in advance. The program must
// not notice it until it retains the context itself.
#pragma once

#include <mutex>
#include <utility>

#include "driver.h"

namespace worker {

class WarmContext {
 public:
  /// The context has default flags and is retained once.
  void hold(CUcontext context) { context_ = context; }

  /// Called when the program retains the primary context of `device`: returns this one with its
  /// retain. Null if there is none.
  CUcontext take(CUdevice device) {
    const std::lock_guard lock(mutex_);
    return device == kDevice ? std::exchange(context_, nullptr) : nullptr;
  }

  /// Call before the program changes the primary context of `device`; it is then created again.
  void drop(const Driver& driver, CUdevice device) {
    if (take(device) != nullptr) driver.cuDevicePrimaryCtxRelease_v2(device);
  }

  bool holds(CUdevice device) const {
    const std::lock_guard lock(mutex_);
    return device == kDevice && context_ != nullptr;
  }

 private:
  static constexpr CUdevice kDevice = 0;
  mutable std::mutex mutex_;
  CUcontext context_ = nullptr;
};

}  // namespace worker
