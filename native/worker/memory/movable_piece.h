// Memory of one handle that can leave the GPU and come back.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda_abi.h"

namespace worker {

struct MovablePiece {
  struct Mapping {
    CUdeviceptr begin = 0;
    std::uint64_t bytes = 0;
    CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;  ///< of the handle's GPU
  };

  CUmemGenericAllocationHandle* handle = nullptr;  ///< in its owner's table; 0 while it is away
  CUmemAllocationProp properties{};
  std::uint64_t bytes = 0;
  std::vector<Mapping> mappings;
};

}  // namespace worker
