// Memory of the nodes of an executable graph during its launches. Guarded by graphMutex().
#pragma once

#include <memory>

#include "cuda_abi.h"
#include "native/simulator/completion.h"

namespace simulator {

struct Graph;

/// Charges the memory that the graph allocates.
CUresult chargeMemory(const Graph& graph);
/// Charges it, and notes what a launch allocates and frees. CUDA_ERROR_INVALID_VALUE if the last
/// launch's memory is not freed and `freeFirst` is false.
CUresult prepareMemory(const Graph& graph, bool freeFirst);
/// Notes the launch that was prepared.
void noteUse(const Graph& graph, const std::shared_ptr<const Completion>& launch);

}  // namespace simulator
