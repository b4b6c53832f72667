// A memset as data.
#pragma once

#include "cuda_abi.h"

namespace simulator {

/// CUDA_ERROR_INVALID_VALUE if the memset is empty, or not aligned and inside one allocation.
CUresult check(const CUDA_MEMSET_NODE_PARAMS& memset);
void run(const CUDA_MEMSET_NODE_PARAMS& memset);

}  // namespace simulator
