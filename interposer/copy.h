// Copies whose host end the worker reaches at the same address: pinned memory, and the chunks of staging.h.
#pragma once

#include <cstddef>

#include "cuda_abi.h"

namespace interposer {

CUresult copyPinnedHtoD(CUdeviceptr destination, const void* source, std::size_t bytes, CUstream stream, bool synchronise);
CUresult copyPinnedDtoH(void* destination, CUdeviceptr source, std::size_t bytes, CUstream stream, bool synchronise);
/// Both ends on the device or pinned.
CUresult copy2D(const CUDA_MEMCPY2D& copy, CUstream stream, bool synchronise);

}  // namespace interposer
