// Addresses of memory operations: what a stream, or a node of a graph, writes or waits for.
#pragma once

#include <span>

#include "cuda_abi.h"

namespace worker {

class Thread;

/// Checks the addresses of a batch: each is memory of a GPU, or host memory that is shared with the
/// client. The driver checks the rest.
CUresult checkOperations(const Thread& thread,
                         std::span<const CUstreamBatchMemOpParams> operations);

}  // namespace worker
