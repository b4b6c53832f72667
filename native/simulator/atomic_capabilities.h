#pragma once

#include <algorithm>

#include "cuda_abi.h"

namespace simulator {

/// Answers `capability`, bits of CUatomicOperationCapability, for each of `count` operations.
inline CUresult answerAtomics(unsigned* capabilities, const CUatomicOperation* operations,
                              unsigned count, unsigned capability) {
  const auto unknown = [](CUatomicOperation operation) {
    return operation < CU_ATOMIC_OPERATION_INTEGER_ADD || operation >= CU_ATOMIC_OPERATION_MAX;
  };
  if (capabilities == nullptr || operations == nullptr || count == 0 ||
      std::any_of(operations, operations + count, unknown))
    return CUDA_ERROR_INVALID_VALUE;
  std::fill_n(capabilities, count, capability);
  return CUDA_SUCCESS;
}

}  // namespace simulator
