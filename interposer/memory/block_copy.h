// Copies of layers of rows between any two of: the device, an array, pinned and pageable memory.
#pragma once

#include "cuda_abi.h"

namespace interposer {

/// How a copy runs: in which stream, and whether the call returns after its end. `peer`: the
/// reserved fields of CUDA_MEMCPY3D are the contexts of CUDA_MEMCPY3D_PEER. `readsNow`: memory of
/// the program has been read when the call returns, pinned memory too.
struct Run {
  CUstream stream;
  bool synchronise;
  bool peer = false;
  bool readsNow = false;
};

CUresult copyBlock(CUDA_MEMCPY3D copy, const Run& run);

}  // namespace interposer
