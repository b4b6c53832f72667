// The primary context of the first device, which a warm worker made before the program asked for it. Until the program retains it, the
// program must not notice.
#pragma once

#include <mutex>
#include <utility>

#include "driver.h"

namespace worker {

class WarmContext {
 public:
  /// Made with the flags that a context has by default, and retained once.
  void hold(CUcontext context) { context_ = context; }

  /// The program retains the primary context of `device`: gives it this one, with the retain that keeps it. Null when there is none.
  CUcontext take(CUdevice device) {
    const std::lock_guard lock(mutex_);
    return device == kDevice ? std::exchange(context_, nullptr) : nullptr;
  }

  /// The program is about to change what the primary context of `device` would be: then it has to be made anew.
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
