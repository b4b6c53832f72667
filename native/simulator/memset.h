// A memset as data.
#pragma once

#include "cuda_abi.h"

namespace simulator {

/// CUDA_ERROR_INVALID_VALUE if the memset is empty, or not aligned and inside one allocation.
CUresult check(const CUDA_MEMSET_NODE_PARAMS& memset);

struct PreparedMemset {
  CUDA_MEMSET_NODE_PARAMS parameters;
  bool mapped;  ///< writes memory of cuMemMap
};
/// A checked memset that can run later: it notes whether its memory may be unmapped until then.
PreparedMemset prepared(const CUDA_MEMSET_NODE_PARAMS& memset);
/// It is a fault if the memory was unmapped before the end.
void run(const PreparedMemset& memset);

}  // namespace simulator
