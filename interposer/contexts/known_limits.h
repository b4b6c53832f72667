// The driver's answers to cuCtxGetLimit. cuBLASLt asks for CU_LIMIT_CIG_ENABLED before each matrix
// product.
#pragma once

#include <array>
#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

/// Belongs to one thread, and to the last context that it asked about. `changes`: contextChanges().
class KnownLimits {
 public:
  struct Answer {
    CUresult status = CUDA_ERROR_UNKNOWN;
    std::size_t value = 0;
  };

  /// Whether only cuCtxSetLimit changes it. The driver enlarges the stack for kernels by itself.
  static bool isFixed(CUlimit limit) { return limit > CU_LIMIT_STACK_SIZE && limit < CU_LIMIT_MAX; }

  /// Null if the driver must be asked.
  const Answer* find(CUcontext context, unsigned changes, CUlimit limit) const {
    const bool known = context == context_ && changes == changes_ && known_[limit];
    return known ? &answers_[limit] : nullptr;
  }
  void note(CUcontext context, unsigned changes, CUlimit limit, Answer answer) {
    if (context != context_ || changes != changes_) known_ = {};
    context_ = context;
    changes_ = changes;
    known_[limit] = true;
    answers_[limit] = answer;
  }

 private:
  CUcontext context_ = nullptr;
  unsigned changes_ = 0;
  std::array<bool, CU_LIMIT_MAX> known_{};
  std::array<Answer, CU_LIMIT_MAX> answers_{};
};

}  // namespace interposer
