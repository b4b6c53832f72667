// Host memory that is registered with the driver for all contexts, so that the GPU can write it.
#pragma once

#include <cstddef>
#include <utility>

#include "driver.h"
#include "native/worker/session/captures.h"

namespace worker {

/// One registration at a time. Belongs to one thread of the worker.
class Registration {
 public:
  explicit Registration(const Driver& driver) : driver_(driver) {}
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;

  /// `contextsEnded` counts ended contexts of the session: a registration ends with its context.
  bool holds(unsigned contextsEnded) const {
    return memory_ != nullptr && contextsEnded == contextsEnded_;
  }
  /// The driver refused once: do not ask again.
  bool refused() const { return refused_; }

  /// False if the driver refuses, or the thread has no current context yet.
  bool begin(void* memory, std::size_t bytes, unsigned contextsEnded) {
    const RelaxedCapture relaxed(driver_);
    const CUresult status = driver_.cuMemHostRegister_v2(
        memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    memory_ = status == CUDA_SUCCESS ? memory : nullptr;
    refused_ = status != CUDA_SUCCESS && status != CUDA_ERROR_INVALID_CONTEXT;
    contextsEnded_ = contextsEnded;
    return status == CUDA_SUCCESS;
  }

  /// False if the driver does not unregister the memory: then the GPU may still write it.
  bool end() {
    if (memory_ == nullptr) return true;
    const RelaxedCapture relaxed(driver_);  // the thread may end beside others
    return driver_.cuMemHostUnregister(std::exchange(memory_, nullptr)) == CUDA_SUCCESS;
  }

 private:
  const Driver& driver_;
  void* memory_ = nullptr;  ///< null: none is registered
  unsigned contextsEnded_ = 0;
  bool refused_ = false;
};

}  // namespace worker
