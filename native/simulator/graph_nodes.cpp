// Calls that add nodes to graphs and remove them.
#include <algorithm>
#include <climits>
#include <cstring>

#include "native/simulator/graph.h"
#include "native/simulator/graph_memory.h"

namespace simulator {
namespace {

/// Whether a node may be added: a child graph takes neither memory nodes nor conditional ones, and
/// memory ends once. What a body takes is checked when its graph becomes executable.
CUresult allowed(const Graph& graph, const Work& work) {
  const auto* freeing = std::get_if<FreeWork>(&work);
  const bool memory = freeing != nullptr || std::holds_alternative<AllocateWork>(work);
  if (!memory && !std::holds_alternative<ConditionalWork>(work)) return CUDA_SUCCESS;
  if (graph.isChild()) return CUDA_ERROR_NOT_SUPPORTED;
  return freeing == nullptr || freeing->memory->mayBeFreedBy(graph.id) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult addNode(Graph& graph, const std::vector<Edge>& dependencies, Work work,
                 GraphNode*& added) {
  const CUresult refused = allowed(graph, work);
  if (refused != CUDA_SUCCESS) return refused;
  GraphNode& node = graph.add(std::move(work));
  for (const Edge& edge : dependencies) {
    const CUresult status = connect(*edge.node, node, edge.data);
    if (status == CUDA_SUCCESS) continue;
    graph.remove(node);
    return status;
  }
  if (auto* freeing = std::get_if<FreeWork>(&node.work)) freeing->memory->freedBy = graph.id;
  if (auto* allocating = std::get_if<AllocateWork>(&node.work))
    allocating->memory->allocatedBy = graph.id;
  if (auto* conditional = std::get_if<ConditionalWork>(&node.work))
    conditional->condition->used = true;
  if (graph.listed) list(graph.nodes.back());
  added = &node;
  return CUDA_SUCCESS;
}

}  // namespace simulator

using namespace simulator;

namespace {

bool contains(const Graph& graph, const Graph& inner) {
  if (&graph == &inner) return true;
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const auto& node) {
    const auto inside = graphsIn(node->work);
    return std::any_of(inside.begin(), inside.end(),
                       [&](const auto& child) { return contains(*child, inner); });
  });
}

/// The work of a child graph node: a copy of the graph, or the graph itself if it is moved.
CUresult embed(const Graph& parent, const CUDA_CHILD_GRAPH_NODE_PARAMS& parameters, Work& work) {
  const auto child = Handles<Graph>::all().find(parameters.graph);
  if (child == nullptr || child->capturing) return CUDA_ERROR_INVALID_VALUE;
  if (child->hasConditionalNodes()) return CUDA_ERROR_NOT_SUPPORTED;
  if (parameters.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
    if (child->embedded || contains(*child, parent)) return CUDA_ERROR_INVALID_VALUE;
    child->embedded = true;
    work = ChildWork{child};
    return CUDA_SUCCESS;
  }
  if (parameters.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_INVALID_VALUE;
  if (child->hasMemoryNodes()) return CUDA_ERROR_NOT_SUPPORTED;
  ChildWork embedded{copyOf(*child)};
  embedded.graph->embedded = true;
  work = std::move(embedded);
  return CUDA_SUCCESS;
}

std::size_t mostBodies(CUgraphConditionalNodeType type) {
  switch (type) {
    case CU_GRAPH_COND_TYPE_IF: return 2;
    case CU_GRAPH_COND_TYPE_WHILE: return 1;
    case CU_GRAPH_COND_TYPE_SWITCH: return UINT_MAX;
    default: return 0;
  }
}

/// The work of a conditional node of `graph`, with empty bodies. The condition was made for the
/// graph, or for one that it is in, and has no other node.
CUresult makeConditional(const Graph& graph, const CUDA_CONDITIONAL_NODE_PARAMS& parameters,
                         Work& work) {
  constexpr std::size_t kMostLevels = 1024;  // bounds the stack of what visits graphs in graphs
  Context* context = nullptr;
  const CUresult status = contextOf(parameters.ctx, context);
  if (status != CUDA_SUCCESS) return status;
  const auto condition = findCondition(parameters.handle);
  if (condition == nullptr || condition->used || &condition->context != context ||
      parameters.size == 0 || parameters.size > mostBodies(parameters.type))
    return CUDA_ERROR_INVALID_VALUE;
  std::vector<std::uint64_t> within = graph.within;
  within.push_back(graph.id);
  if (std::find(within.begin(), within.end(), condition->graph) == within.end())
    return CUDA_ERROR_INVALID_VALUE;
  if (within.size() > kMostLevels) return CUDA_ERROR_NOT_SUPPORTED;
  ConditionalWork conditional{condition, parameters.type, {}, {}};
  for (unsigned i = 0; i < parameters.size; ++i) {
    auto body = std::make_shared<Graph>();
    body->embedded = true;
    body->within = within;
    conditional.handles.push_back(handleOf<CUgraph>(body.get()));
    conditional.bodies.push_back(std::move(body));
  }
  work = std::move(conditional);
  return CUDA_SUCCESS;
}

CUresult makeNode(const Graph& graph, const CUgraphNodeParams& parameters, Work& work) {
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_GRAPH: return embed(graph, parameters.graph, work);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      return makeConditional(graph, parameters.conditional, work);
    default: return makeWork(parameters, work);
  }
}

CUresult add(CUgraphNode* phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
             const CUgraphEdgeData* data, size_t count, CUgraphNodeParams& parameters) {
  return onGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (phGraphNode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> edges;
    CUresult status = readEdges(graph, dependencies, data, count, edges);
    if (status != CUDA_SUCCESS) return status;
    Work work = EmptyWork{};
    status = makeNode(graph, parameters, work);
    if (status != CUDA_SUCCESS) return status;
    if (const auto* allocating = std::get_if<AllocateWork>(&work))
      parameters.alloc.dptr = allocating->parameters.dptr;
    GraphNode* node = nullptr;
    status = addNode(graph, edges, std::move(work), node);
    if (status != CUDA_SUCCESS) return status;
    *phGraphNode = handleOf<CUgraphNode>(node);
    if (auto* conditional = std::get_if<ConditionalWork>(&node->work))
      parameters.conditional.phGraph_out = conditional->handles.data();
    return CUDA_SUCCESS;
  });
}

CUgraphNodeParams parametersOf(CUgraphNodeType type) {
  CUgraphNodeParams parameters{};
  parameters.type = type;
  return parameters;
}

}  // namespace

DRIVER_CALL cuGraphConditionalHandleCreate(CUgraphConditionalHandle* pHandle_out, CUgraph hGraph,
                                           CUcontext ctx, unsigned int defaultLaunchValue,
                                           unsigned int flags) {
  return onGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (pHandle_out == nullptr || (flags & ~unsigned{CU_GRAPH_COND_ASSIGN_DEFAULT}) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    Context* context = nullptr;
    const CUresult status = contextOf(ctx, context);
    if (status != CUDA_SUCCESS) return status;
    // Without the flag a launch begins with an undefined value; here it is 0.
    const std::uint32_t initial = flags == CU_GRAPH_COND_ASSIGN_DEFAULT ? defaultLaunchValue : 0;
    graph.conditions.push_back(makeCondition(*context, graph.id, initial));
    *pHandle_out = graph.conditions.back()->handle;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphAddNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                           const CUgraphNode* dependencies, size_t numDependencies,
                           CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, *nodeParams);
}

DRIVER_CALL cuGraphAddNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                              const CUgraphNode* dependencies,
                              const CUgraphEdgeData* dependencyData, size_t numDependencies,
                              CUgraphNodeParams* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add(phGraphNode, hGraph, dependencies, dependencyData, numDependencies, *nodeParams);
}

DRIVER_CALL cuGraphAddKernelNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&parameters.kernel, nodeParams, sizeof *nodeParams);  // v3 begins as v1
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddKernelNode_v2(CUgraphNode* phGraphNode, CUgraph hGraph,
                                    const CUgraphNode* dependencies, size_t numDependencies,
                                    const CUDA_KERNEL_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_KERNEL);
  std::memcpy(&parameters.kernel, nodeParams, sizeof *nodeParams);
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddMemcpyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_MEMCPY3D* copyParams, CUcontext ctx) {
  if (copyParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEMCPY);
  parameters.memcpy.copyCtx = ctx;
  parameters.memcpy.copyParams = *copyParams;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddMemsetNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                 const CUgraphNode* dependencies, size_t numDependencies,
                                 const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx) {
  if (memsetParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEMSET);
  std::memcpy(&parameters.memset, memsetParams, sizeof *memsetParams);  // v2 begins as v1
  parameters.memset.ctx = ctx;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddBatchMemOpNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                     const CUgraphNode* dependencies, size_t numDependencies,
                                     const CUDA_BATCH_MEM_OP_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
  std::memcpy(&parameters.memOp, nodeParams, sizeof *nodeParams);  // v2 is as v1
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddHostNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                               const CUgraphNode* dependencies, size_t numDependencies,
                               const CUDA_HOST_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_HOST);
  parameters.host.fn = nodeParams->fn;
  parameters.host.userData = nodeParams->userData;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddChildGraphNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                     const CUgraphNode* dependencies, size_t numDependencies,
                                     CUgraph childGraph) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_GRAPH);
  parameters.graph.graph = childGraph;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddEmptyNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                const CUgraphNode* dependencies, size_t numDependencies) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_EMPTY);
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddEventRecordNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                      const CUgraphNode* dependencies, size_t numDependencies,
                                      CUevent event) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_EVENT_RECORD);
  parameters.eventRecord.event = event;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddEventWaitNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                    const CUgraphNode* dependencies, size_t numDependencies,
                                    CUevent event) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_WAIT_EVENT);
  parameters.eventWait.event = event;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphAddMemAllocNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                   const CUgraphNode* dependencies, size_t numDependencies,
                                   CUDA_MEM_ALLOC_NODE_PARAMS* nodeParams) {
  if (nodeParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
  std::memcpy(&parameters.alloc, nodeParams, sizeof *nodeParams);
  const CUresult status =
      add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
  if (status == CUDA_SUCCESS) nodeParams->dptr = parameters.alloc.dptr;
  return status;
}

DRIVER_CALL cuGraphAddMemFreeNode(CUgraphNode* phGraphNode, CUgraph hGraph,
                                  const CUgraphNode* dependencies, size_t numDependencies,
                                  CUdeviceptr dptr) {
  CUgraphNodeParams parameters = parametersOf(CU_GRAPH_NODE_TYPE_MEM_FREE);
  parameters.free.dptr = dptr;
  return add(phGraphNode, hGraph, dependencies, nullptr, numDependencies, parameters);
}

DRIVER_CALL cuGraphDestroyNode(CUgraphNode hNode) {
  return onNode(hNode, [](GraphNode& node) -> CUresult {
    Graph& graph = node.graph;
    if (graph.capturing || graph.hasMemoryNodes()) return CUDA_ERROR_INVALID_VALUE;
    graph.remove(node);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType* type) {
  return onNode(hNode, [&](GraphNode& node) -> CUresult {
    if (type == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *type = typeOf(node.work);
    return CUDA_SUCCESS;
  });
}
