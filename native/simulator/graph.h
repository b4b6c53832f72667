// Graphs: nodes with work, and edges that order them. Guarded by graphMutex().
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/graph_condition.h"
#include "native/simulator/graph_mutex.h"
#include "native/simulator/graph_work.h"
#include "native/simulator/handles.h"
#include "native/simulator/user_object.h"

namespace simulator {

struct Graph;
struct GraphExec;
struct GraphNode;

/// One dependency of a node.
struct Edge {
  GraphNode* node;
  CUgraphEdgeData data;
};

struct GraphNode {
  GraphNode(Graph& graph_, Work work_, std::uint64_t origin_);

  Graph& graph;
  const std::uint64_t id;      ///< unique in the process
  const std::uint64_t origin;  ///< the id of the node that this one is a copy of; 0: of none
  Work work;
  bool enabled = true;             ///< set in executable graphs only
  bool mustBeJoined = false;       ///< the capture that made it cannot end beside it
  std::vector<Edge> dependencies;  ///< in the order in which they were added
  std::vector<GraphNode*> dependents;
};

struct Graph {
  explicit Graph(std::uint64_t origin_ = 0);

  const std::uint64_t id;      ///< unique in the process
  const std::uint64_t origin;  ///< the id of the graph that this one is a copy of; 0: of none
  std::vector<std::shared_ptr<GraphNode>> nodes;  ///< in the order in which they were added
  bool embedded = false;                          ///< a node owns it
  bool capturing = false;                         ///< a stream captures into it
  bool listed = false;                            ///< it and its nodes have handles
  /// For a body of a conditional node: the ids of the graphs that it is in, the outermost first.
  std::vector<std::uint64_t> within;
  std::vector<std::shared_ptr<Condition>> conditions;  ///< made for it; copies have none
  UserReferences userObjects;
  std::weak_ptr<GraphExec> executable;  ///< the last one that was made of it

  /// Whether a node owns it as its child graph, not as a body.
  bool isChild() const { return embedded && within.empty(); }
  /// Adds a node without dependencies.
  GraphNode& add(Work work, std::uint64_t origin = 0);
  void remove(GraphNode& node);
  /// The nodes, each after its dependencies; empty if there is a cycle (or no node).
  std::vector<GraphNode*> ordered() const;
  /// Whether it or a graph in it allocates or frees memory.
  bool hasMemoryNodes() const;
  bool hasConditionalNodes() const;
};

/// A copy of a graph and the graphs in it, whose nodes name the original ones as their origin.
std::shared_ptr<Graph> copyOf(const Graph& graph);
/// Runs visit(const Work&) for the nodes of a graph and of the graphs in it.
template <class Visit>
void eachWork(const Graph& graph, const Visit& visit) {
  for (const auto& node : graph.nodes) {
    visit(node->work);
    for (const auto& inner : graphsIn(node->work)) eachWork(*inner, visit);
  }
}
/// Gives handles to a graph, its nodes and the graphs in it.
void list(const std::shared_ptr<Graph>& graph);
void list(const std::shared_ptr<GraphNode>& node);
/// Invalidates the handles of a graph, its nodes and the graphs in it.
void unlist(Graph& graph);

/// Adds an edge. CUDA_ERROR_INVALID_VALUE if it exists or its data do not fit the nodes.
CUresult connect(GraphNode& from, GraphNode& to, const CUgraphEdgeData& data);
/// Reads an array of handles of nodes of `graph`; `data` may be null.
CUresult readEdges(const Graph& graph, const CUgraphNode* nodes, const CUgraphEdgeData* data,
                   std::size_t count, std::vector<Edge>& edges);
/// Adds a node with dependencies, with a handle if the graph has one.
CUresult addNode(Graph& graph, const std::vector<Edge>& dependencies, Work work, GraphNode*& added);

inline bool isDefault(const CUgraphEdgeData& data) {
  return data.from_port == 0 && data.to_port == 0 && data.type == 0;
}

/// Runs body(Graph&) on the graph that a handle names.
template <class Body>
CUresult onGraph(CUgraph handle, Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    const std::lock_guard lock(graphMutex());
    const auto graph = Handles<Graph>::all().find(handle);
    return graph == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*graph);
  });
}

/// Runs body(GraphNode&) on the node that a handle names.
template <class Body>
CUresult onNode(CUgraphNode handle, Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    const std::lock_guard lock(graphMutex());
    const auto node = Handles<GraphNode>::all().find(handle);
    return node == nullptr ? CUDA_ERROR_INVALID_VALUE : body(*node);
  });
}

}  // namespace simulator
