// Edges of graphs, and the questions about nodes and edges.
#include <algorithm>
#include <iterator>

#include "native/simulator/graph.h"

namespace simulator {
namespace {

/// Only the end of a kernel has ports: full completion, and two earlier points that order kernels.
bool fits(const GraphNode& from, const GraphNode& to, const CUgraphEdgeData& data) {
  const bool fromKernel = std::holds_alternative<KernelWork>(from.work);
  const bool blank = std::all_of(std::begin(data.reserved), std::end(data.reserved),
                                 [](unsigned char byte) { return byte == 0; });
  if (!blank || data.to_port != 0 || data.type > CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
    return false;
  if (data.from_port > CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER) return false;
  if (data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT && !fromKernel) return false;
  if (data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT) return true;
  return data.from_port != CU_GRAPH_KERNEL_NODE_PORT_DEFAULT &&
         std::holds_alternative<KernelWork>(to.work);
}

std::vector<Edge>::iterator findEdge(const GraphNode& from, GraphNode& to) {
  return std::find_if(to.dependencies.begin(), to.dependencies.end(),
                      [&](const Edge& edge) { return edge.node == &from; });
}

}  // namespace

CUresult connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  if (&from == &to || !fits(from, to, data)) return CUDA_ERROR_INVALID_VALUE;
  if (findEdge(from, to) != to.dependencies.end()) return CUDA_ERROR_INVALID_VALUE;
  to.dependencies.push_back({&from, data});
  from.dependents.push_back(&to);
  return CUDA_SUCCESS;
}

CUresult readEdges(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                   std::size_t count, std::vector<Edge>& edges) {
  if (count > 0 && nodes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (count > graph.nodes.size()) return CUDA_ERROR_INVALID_VALUE;  // then one is named twice
  for (std::size_t i = 0; i < count; ++i) {
    const auto node = Handles<GraphNode>::all().find(nodes[i]);
    if (node == nullptr || &node->graph != &graph) return CUDA_ERROR_INVALID_VALUE;
    edges.push_back({node.get(), data == nullptr ? CUgraphEdgeData{} : data[i]});
  }
  return CUDA_SUCCESS;
}

}  // namespace simulator

using namespace simulator;

namespace {

/// Fills an array that a program gave, as far as it reaches; what it has beyond becomes null.
/// Without an array only the number is told.
template <class Handle, class Objects, class ToHandle>
CUresult give(const Objects& objects, Handle* array, size_t* count, ToHandle&& toHandle) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::size_t all = std::size(objects);
  if (array == nullptr) {
    *count = all;
    return CUDA_SUCCESS;
  }
  for (std::size_t i = 0; i < *count; ++i) array[i] = i < all ? toHandle(objects[i]) : Handle{};
  *count = std::min(*count, all);
  return CUDA_SUCCESS;
}

CUgraphNode handle(const GraphNode* node) { return handleOf<CUgraphNode>(node); }

/// Fills parallel arrays of nodes and of the data of their edges.
CUresult giveEdges(const std::vector<Edge>& edges, CUgraphNode* nodes, CUgraphEdgeData* data,
                   size_t* count) {
  if (count == nullptr || (data != nullptr && nodes == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  const bool plain = std::all_of(edges.begin(), edges.end(),
                                 [](const Edge& edge) { return isDefault(edge.data); });
  if (nodes != nullptr && data == nullptr && !plain) return CUDA_ERROR_LOSSY_QUERY;
  size_t dataCount = *count;
  const CUresult status =
      give(edges, nodes, count, [](const Edge& edge) { return handle(edge.node); });
  if (status != CUDA_SUCCESS || data == nullptr) return status;
  return give(edges, data, &dataCount, [](const Edge& edge) { return edge.data; });
}

CUresult edgesOf(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                 size_t* count) {
  return onGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (count == nullptr || (from == nullptr) != (to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Edge> sources, targets;
    for (const auto& node : graph.nodes) {
      for (const Edge& edge : node->dependencies) {
        sources.push_back(edge);
        targets.push_back({node.get(), edge.data});
      }
    }
    size_t targetCount = *count;
    const CUresult status = giveEdges(sources, from, data, count);
    if (status != CUDA_SUCCESS || to == nullptr) return status;
    return give(targets, to, &targetCount, [](const Edge& edge) { return handle(edge.node); });
  });
}

CUresult dependents(CUgraphNode hNode, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return onNode(hNode, [&](GraphNode& node) {
    std::vector<Edge> edges;
    for (GraphNode* dependent : node.dependents) {
      for (const Edge& edge : dependent->dependencies) {
        if (edge.node == &node) edges.push_back({dependent, edge.data});
      }
    }
    return giveEdges(edges, nodes, data, count);
  });
}

CUresult dependencies(CUgraphNode hNode, CUgraphNode* nodes, CUgraphEdgeData* data, size_t* count) {
  return onNode(hNode,
                [&](GraphNode& node) { return giveEdges(node.dependencies, nodes, data, count); });
}

/// Runs change(GraphNode& from, GraphNode& to, data) for each pair of nodes of the graph.
template <class Change>
CUresult changeEdges(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                     const CUgraphEdgeData* data, size_t count, Change&& change) {
  return onGraph(hGraph, [&](Graph& graph) -> CUresult {
    if (count > 0 && (from == nullptr || to == nullptr)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
      const auto source = Handles<GraphNode>::all().find(from[i]);
      const auto target = Handles<GraphNode>::all().find(to[i]);
      if (source == nullptr || target == nullptr || &source->graph != &graph ||
          &target->graph != &graph)
        return CUDA_ERROR_INVALID_VALUE;
      const CUresult status =
          change(*source, *target, data == nullptr ? CUgraphEdgeData{} : data[i]);
      if (status != CUDA_SUCCESS) return status;
    }
    return CUDA_SUCCESS;
  });
}

CUresult disconnect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data) {
  const auto found = findEdge(from, to);
  if (found == to.dependencies.end() || from.graph.hasMemoryNodes())
    return CUDA_ERROR_INVALID_VALUE;
  const CUgraphEdgeData& existing = found->data;
  if (existing.from_port != data.from_port || existing.to_port != data.to_port ||
      existing.type != data.type)
    return CUDA_ERROR_INVALID_VALUE;
  to.dependencies.erase(found);
  std::erase(from.dependents, &to);
  return CUDA_SUCCESS;
}

}  // namespace

DRIVER_CALL cuGraphGetNodes(CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes) {
  return onGraph(hGraph, [&](Graph& graph) {
    return give(graph.nodes, nodes, numNodes,
                [](const std::shared_ptr<GraphNode>& node) { return handle(node.get()); });
  });
}

DRIVER_CALL cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes) {
  return onGraph(hGraph, [&](Graph& graph) {
    std::vector<const GraphNode*> roots;
    for (const auto& node : graph.nodes) {
      if (node->dependencies.empty()) roots.push_back(node.get());
    }
    return give(roots, rootNodes, numRootNodes, handle);
  });
}

DRIVER_CALL cuGraphGetEdges(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges) {
  return edgesOf(hGraph, from, to, nullptr, numEdges);
}
DRIVER_CALL cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode* from, CUgraphNode* to,
                               CUgraphEdgeData* edgeData, size_t* numEdges) {
  return edgesOf(hGraph, from, to, edgeData, numEdges);
}

DRIVER_CALL cuGraphNodeGetDependencies(CUgraphNode hNode, CUgraphNode* nodes, size_t* count) {
  return dependencies(hNode, nodes, nullptr, count);
}
DRIVER_CALL cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode* nodes,
                                          CUgraphEdgeData* edgeData, size_t* count) {
  return dependencies(hNode, nodes, edgeData, count);
}

DRIVER_CALL cuGraphNodeGetDependentNodes(CUgraphNode hNode, CUgraphNode* nodes, size_t* count) {
  return dependents(hNode, nodes, nullptr, count);
}
DRIVER_CALL cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode* nodes,
                                            CUgraphEdgeData* edgeData, size_t* count) {
  return dependents(hNode, nodes, edgeData, count);
}

DRIVER_CALL cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
                                   size_t numDependencies) {
  return changeEdges(hGraph, from, to, nullptr, numDependencies, connect);
}
DRIVER_CALL cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                      const CUgraphNode* to, const CUgraphEdgeData* edgeData,
                                      size_t numDependencies) {
  return changeEdges(hGraph, from, to, edgeData, numDependencies, connect);
}

DRIVER_CALL cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode* from,
                                      const CUgraphNode* to, size_t numDependencies) {
  return changeEdges(hGraph, from, to, nullptr, numDependencies, disconnect);
}
DRIVER_CALL cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode* from,
                                         const CUgraphNode* to, const CUgraphEdgeData* edgeData,
                                         size_t numDependencies) {
  return changeEdges(hGraph, from, to, edgeData, numDependencies, disconnect);
}
