// Errors that both ends treat as the end of a context.
#pragma once

#include <cstdint>

namespace wire {

/// Whether the context is unusable after the error, according to the comments of CUresult in
/// cuda.h.
constexpr bool isFault(std::int32_t result) {
  switch (result) {
    case 226:  // CUDA_ERROR_CONTAINED
    case 700:  // CUDA_ERROR_ILLEGAL_ADDRESS
    case 702:  // CUDA_ERROR_LAUNCH_TIMEOUT
    case 710:  // CUDA_ERROR_ASSERT
    case 714:  // CUDA_ERROR_HARDWARE_STACK_ERROR
    case 715:  // CUDA_ERROR_ILLEGAL_INSTRUCTION
    case 716:  // CUDA_ERROR_MISALIGNED_ADDRESS
    case 717:  // CUDA_ERROR_INVALID_ADDRESS_SPACE
    case 718:  // CUDA_ERROR_INVALID_PC
    case 719:  // CUDA_ERROR_LAUNCH_FAILED
    case 721:  // CUDA_ERROR_TENSOR_MEMORY_LEAK
    case 911:  // CUDA_ERROR_EXTERNAL_DEVICE
      return true;
    default: return false;
  }
}

}  // namespace wire
