// Changes that are allowed in an executable graph.
#pragma once

#include "native/simulator/graph_exec.h"

namespace simulator {

/// Why an update was refused.
struct Mismatch {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  const GraphNode* node = nullptr;  ///< of the graph with the new parameters
  const GraphNode* from = nullptr;  ///< the dependency of `node` that differs
};

/// Why the work of an executable node cannot change to another work of the same type.
CUgraphExecUpdateResult refuse(const Work& was, const Work& is);
/// Gives the nodes of `target`, the executable graph or one of its child graphs, the work of the
/// nodes of `graph`, which must have the same shape.
CUresult update(GraphExec& exec, Graph& target, const Graph& graph, Mismatch& mismatch);

}  // namespace simulator
