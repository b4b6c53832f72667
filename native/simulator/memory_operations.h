// Operations on words of memory in stream order: writes, and waits for a value.
#pragma once

#include <span>
#include <vector>

#include "cuda_abi.h"

namespace simulator {

using MemoryOperations = std::vector<CUstreamBatchMemOpParams>;

/// The error of operations that the driver refuses at once, or CUDA_SUCCESS.
CUresult check(std::span<const CUstreamBatchMemOpParams> operations);

struct PreparedOperation {
  CUstreamBatchMemOpParams parameters;
  bool mapped;  ///< on a word of memory of cuMemMap
};
/// Checked operations that can run later: they note whether their memory may be unmapped until
/// then.
std::vector<PreparedOperation> prepared(const MemoryOperations& operations);
/// Executes them in order. A wait ends when its condition holds, or the process has a fault. It is
/// a fault if a word was unmapped.
void run(const std::vector<PreparedOperation>& operations);

}  // namespace simulator
