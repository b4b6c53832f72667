// The driver's answers to cuCtxGetLimit. cuBLASLt asks for CU_LIMIT_CIG_ENABLED before each matrix
// product.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "cuda_abi.h"

namespace interposer {

/// Belongs to one thread, and to the last context that it asked about. `changes`: contextChanges().
class KnownLimits {
 public:
  /// Whether only cuCtxSetLimit changes it. The driver enlarges the stack for kernels by itself.
  static bool isFixed(CUlimit limit) { return limit > CU_LIMIT_STACK_SIZE && limit < CU_LIMIT_MAX; }

  /// Empty if the driver must be asked.
  std::optional<std::size_t> find(CUcontext context, unsigned changes, CUlimit limit) const {
    return context == context_ && changes == changes_ ? values_[limit] : std::nullopt;
  }
  void note(CUcontext context, unsigned changes, CUlimit limit, std::size_t value) {
    if (context != context_ || changes != changes_) values_ = {};
    context_ = context;
    changes_ = changes;
    values_[limit] = value;
  }

 private:
  CUcontext context_ = nullptr;
  unsigned changes_ = 0;
  std::array<std::optional<std::size_t>, CU_LIMIT_MAX> values_{};
};

}  // namespace interposer
