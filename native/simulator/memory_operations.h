// Operations on words of memory in stream order: writes, and waits for a value.
#pragma once

#include <span>
#include <vector>

#include "cuda_abi.h"

namespace simulator {

using MemoryOperations = std::vector<CUstreamBatchMemOpParams>;

/// The error of operations that the driver refuses at once, or CUDA_SUCCESS.
CUresult check(std::span<const CUstreamBatchMemOpParams> operations);
/// Executes them in order. A wait ends when its condition holds, or the process has a fault.
void run(const MemoryOperations& operations);

}  // namespace simulator
