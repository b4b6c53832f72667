// The current context of the worker's own calls.
#pragma once

#include <optional>

#include "driver.h"
#include "native/worker/session/captures.h"

namespace worker {

/// Makes a context current while it lives.
class InContext {
 public:
  InContext(const Driver& driver, CUcontext context)
      : driver_(driver),
        relaxed_(driver),
        status_(context == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                   : driver.cuCtxPushCurrent_v2(context)) {}
  ~InContext() {
    CUcontext popped = nullptr;
    if (status_ == CUDA_SUCCESS) driver_.cuCtxPopCurrent_v2(&popped);
  }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;
  CUresult status() const { return status_; }

 private:
  const Driver& driver_;
  const RelaxedCapture relaxed_;
  const CUresult status_;
};

/// Makes a context current while it lives, if none is.
class InSomeContext {
 public:
  InSomeContext(const Driver& driver, CUcontext context) {
    CUcontext current = nullptr;
    driver.cuCtxGetCurrent(&current);
    if (current == nullptr) own_.emplace(driver, context);
  }

 private:
  std::optional<InContext> own_;
};

}  // namespace worker
