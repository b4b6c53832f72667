// Changes of single nodes of executable graphs.
#include <cstring>
#include <utility>

#include "native/simulator/graph_update.h"

using namespace simulator;

namespace {

bool linear(const CUDA_MEMCPY3D& copy) { return copy.Height <= 1 && copy.Depth <= 1; }

/// The node of a copy, or of a graph in it, whose origin is `id`; null if there is none.
GraphNode* findCopy(Graph& copy, std::uint64_t id) {
  for (const auto& node : copy.nodes) {
    if (node->origin == id) return node.get();
    for (const auto& inner : graphsIn(node->work)) {
      if (GraphNode* found = findCopy(*inner, id)) return found;
    }
  }
  return nullptr;
}

/// Runs body(GraphExec&, GraphNode& node, GraphNode& mine): `mine` is the executable graph's node.
template <class Body>
CUresult onExecNode(CUgraphExec hGraphExec, CUgraphNode hNode, Body&& body) {
  return onGraphExec(hGraphExec, [&](GraphExec& exec) -> CUresult {
    const auto node = Handles<GraphNode>::all().find(hNode);
    if (node == nullptr) return CUDA_ERROR_INVALID_VALUE;
    GraphNode* mine = findCopy(*exec.graph, node->id);
    return mine == nullptr ? CUDA_ERROR_INVALID_VALUE : body(exec, *node, *mine);
  });
}

CUresult updateChild(GraphExec& exec, GraphNode& mine, CUgraph childGraph) {
  const auto* child = std::get_if<ChildWork>(&mine.work);
  const auto graph = Handles<Graph>::all().find(childGraph);
  if (child == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Mismatch unused;
  return update(exec, *child->graph, *graph, unused) == CUDA_SUCCESS ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_VALUE;
}

/// A single node may change only what cuGraphExecUpdate may, and copies only if they are linear.
CUresult refuseNode(const Work& was, const Work& is) {
  if (refuse(was, is) != CU_GRAPH_EXEC_UPDATE_SUCCESS) return CUDA_ERROR_INVALID_VALUE;
  const auto* copy = std::get_if<CopyWork>(&is);
  if (copy == nullptr) return CUDA_SUCCESS;
  return linear(copy->parameters) && linear(std::get<CopyWork>(was).parameters)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult set(CUgraphExec hGraphExec, CUgraphNode hNode, const CUgraphNodeParams& parameters) {
  return onExecNode(hGraphExec, hNode,
                    [&](GraphExec& exec, GraphNode&, GraphNode& mine) -> CUresult {
                      if (parameters.type != typeOf(mine.work)) return CUDA_ERROR_INVALID_VALUE;
                      if (parameters.type == CU_GRAPH_NODE_TYPE_GRAPH)
                        return updateChild(exec, mine, parameters.graph.graph);
                      if (parameters.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
                          parameters.type == CU_GRAPH_NODE_TYPE_MEM_FREE ||
                          parameters.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
                        return CUDA_ERROR_NOT_SUPPORTED;
                      Work made = EmptyWork{};
                      CUresult status = makeWork(parameters, made);
                      if (status != CUDA_SUCCESS) return status;
                      if (auto* kernel = std::get_if<KernelWork>(&made))
                        kernel->attributes = std::get<KernelWork>(mine.work).attributes;
                      status = refuseNode(mine.work, made);
                      if (status == CUDA_SUCCESS) status = checkWork(made);
                      if (status != CUDA_SUCCESS) return status;
                      mine.work = std::move(made);
                      exec.plan = nullptr;
                      return CUDA_SUCCESS;
                    });
}

CUgraphNodeParams parametersOf(CUgraphNodeType type) {
  CUgraphNodeParams parameters{};
  parameters.type = type;
  return parameters;
}

template <class Given>
CUresult setKernel(CUgraphExec hGraphExec, CUgraphNode hNode, const Given* given) {
  if (given == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&parameters.kernel, given, sizeof *given);  // all versions begin alike
  return set(hGraphExec, hNode, parameters);
}

bool canBeDisabled(const Work& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<MemsetWork>(work);
}

}  // namespace

DRIVER_CALL cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                     CUgraphNodeParams* nodeParams) {
  return nodeParams == nullptr ? CUDA_ERROR_INVALID_VALUE : set(hGraphExec, hNode, *nodeParams);
}

DRIVER_CALL cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  return setKernel(hGraphExec, hNode, nodeParams);
}
DRIVER_CALL cuGraphExecKernelNodeSetParams_v2(CUgraphExec hGraphExec, CUgraphNode hNode,
                                              const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  return setKernel(hGraphExec, hNode, nodeParams);
}

DRIVER_CALL cuGraphExecMemcpyNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEMCPY);
  parameters.memcpy.copyCtx = ctx;
  parameters.memcpy.copyParams = *copyParams;
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                           const CUDA_MEMSET_NODE_PARAMS* memsetParams,
                                           CUcontext ctx) {
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEMSET);
  std::memcpy(&parameters.memset, memsetParams, sizeof *memsetParams);  // v2 begins as v1
  parameters.memset.ctx = ctx;
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecHostNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                         const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_HOST);
  parameters.host = {nodeParams->fn, nodeParams->userData};
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecBatchMemOpNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  std::memcpy(&parameters.memOp, nodeParams, sizeof *nodeParams);  // v2 is as v1
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUgraph childGraph) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_GRAPH);
  parameters.graph.graph = childGraph;
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecEventRecordNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                               CUevent event) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  parameters.eventRecord.event = event;
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphExecEventWaitNodeSetEvent(CUgraphExec hGraphExec, CUgraphNode hNode,
                                             CUevent event) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  parameters.eventWait.event = event;
  return set(hGraphExec, hNode, parameters);
}

DRIVER_CALL cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  unsigned int isEnabled) {
  return onExecNode(hGraphExec, hNode,
                    [&](GraphExec& exec, GraphNode&, GraphNode& mine) -> CUresult {
                      if (!canBeDisabled(mine.work)) return CUDA_ERROR_INVALID_VALUE;
                      mine.enabled = isEnabled != 0;
                      exec.plan = nullptr;
                      return CUDA_SUCCESS;
                    });
}

DRIVER_CALL cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                  unsigned int* isEnabled) {
  return onExecNode(hGraphExec, hNode, [&](GraphExec&, GraphNode&, GraphNode& mine) -> CUresult {
    if (isEnabled == nullptr || !canBeDisabled(mine.work)) return CUDA_ERROR_INVALID_VALUE;
    *isEnabled = mine.enabled ? 1 : 0;
    return CUDA_SUCCESS;
  });
}
