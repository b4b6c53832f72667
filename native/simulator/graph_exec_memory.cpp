#include "native/simulator/graph_exec_memory.h"

#include <functional>

#include "native/simulator/graph.h"
#include "native/simulator/graph_memory.h"

namespace simulator {
namespace {

/// Runs visit(memory, allocates) for the memory nodes of a graph and the graphs in it, in order.
void eachMemoryNode(
    const Graph& graph,
    const std::function<void(const std::shared_ptr<GraphMemory>&, bool allocates)>& visit) {
  for (const GraphNode* node : graph.ordered()) {
    if (const auto* allocating = std::get_if<AllocateWork>(&node->work))
      visit(allocating->memory, true);
    if (const auto* freeing = std::get_if<FreeWork>(&node->work)) visit(freeing->memory, false);
    for (const auto& inner : graphsIn(node->work)) eachMemoryNode(*inner, visit);
  }
}

}  // namespace

CUresult chargeMemory(const Graph& graph) {
  if (!graph.hasMemoryNodes()) return CUDA_SUCCESS;
  bool fits = true;
  eachMemoryNode(graph, [&](const std::shared_ptr<GraphMemory>& memory, bool allocates) {
    fits = fits && (!allocates || memory->charge());
  });
  return fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult prepareMemory(const Graph& graph, bool freeFirst) {
  if (!graph.hasMemoryNodes()) return CUDA_SUCCESS;
  bool possible = true;
  eachMemoryNode(graph, [&](const std::shared_ptr<GraphMemory>& memory, bool allocates) {
    const bool foreign = memory->allocatedBy != memory->freedBy;
    if (allocates ? memory->outstanding && !freeFirst : foreign && !memory->outstanding)
      possible = false;
  });
  if (!possible) return CUDA_ERROR_INVALID_VALUE;
  const CUresult status = chargeMemory(graph);
  if (status == CUDA_SUCCESS) eachMemoryNode(graph, setOutstanding);
  return status;
}

void noteUse(const Graph& graph, const std::shared_ptr<const Completion>& launch) {
  if (!graph.hasMemoryNodes()) return;
  eachMemoryNode(
      graph, [&](const std::shared_ptr<GraphMemory>& memory, bool) { memory->lastUse = launch; });
}

}  // namespace simulator
