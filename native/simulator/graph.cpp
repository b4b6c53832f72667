// Graphs as objects: creation, copies and their end. Nodes are in graph_nodes.cpp, edges in
// graph_edges.cpp.
#include "native/simulator/graph.h"

#include <algorithm>
#include <atomic>
#include <unordered_map>
#include <utility>

namespace simulator {
namespace {

std::atomic<std::uint64_t> nextGraphId{1}, nextNodeId{1};

std::shared_ptr<Graph> embeddedCopyOf(const Graph& graph) {
  auto copied = copyOf(graph);
  copied->embedded = true;
  return copied;
}

/// The work of a copied node: the graphs that it owns are copied, too.
Work copyOf(const Work& work) {
  if (const auto* child = std::get_if<ChildWork>(&work))
    return ChildWork{embeddedCopyOf(*child->graph)};
  const auto* conditional = std::get_if<ConditionalWork>(&work);
  if (conditional == nullptr) return work;
  ConditionalWork copied{conditional->condition, conditional->type, {}, {}};
  for (const auto& body : conditional->bodies) copied.bodies.push_back(embeddedCopyOf(*body));
  return copied;
}

/// The condition of work that ends may get another node.
void releaseCondition(const Work& work) {
  if (const auto* conditional = std::get_if<ConditionalWork>(&work))
    conditional->condition->used = false;
}

}  // namespace

GraphNode::GraphNode(Graph& graph_, Work work_, std::uint64_t origin_)
    : graph(graph_), id(nextNodeId.fetch_add(1)), origin(origin_), work(std::move(work_)) {}

Graph::Graph(std::uint64_t origin_) : id(nextGraphId.fetch_add(1)), origin(origin_) {}

GraphNode& Graph::add(Work work, std::uint64_t origin_) {
  nodes.push_back(std::make_shared<GraphNode>(*this, std::move(work), origin_));
  return *nodes.back();
}

void Graph::remove(GraphNode& node) {
  for (const Edge& edge : node.dependencies) std::erase(edge.node->dependents, &node);
  for (GraphNode* dependent : node.dependents) {
    std::erase_if(dependent->dependencies, [&](const Edge& edge) { return edge.node == &node; });
  }
  releaseCondition(node.work);
  for (const auto& inner : graphsIn(node.work)) {
    eachWork(*inner, releaseCondition);
    unlist(*inner);
  }
  Handles<GraphNode>::all().remove(&node);
  std::erase_if(nodes, [&](const auto& candidate) { return candidate.get() == &node; });
}

std::vector<GraphNode*> Graph::ordered() const {
  std::unordered_map<const GraphNode*, std::size_t> waiting;
  std::vector<GraphNode*> order;
  for (const auto& node : nodes) {
    waiting[node.get()] = node->dependencies.size();
    if (node->dependencies.empty()) order.push_back(node.get());
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (GraphNode* dependent : order[i]->dependents) {
      if (--waiting[dependent] == 0) order.push_back(dependent);
    }
  }
  if (order.size() != nodes.size()) order.clear();
  return order;
}

bool Graph::hasMemoryNodes() const {
  bool found = false;
  eachWork(*this, [&](const Work& work) {
    found |= std::holds_alternative<AllocateWork>(work) || std::holds_alternative<FreeWork>(work);
  });
  return found;
}

bool Graph::hasConditionalNodes() const {
  bool found = false;
  eachWork(*this,
           [&](const Work& work) { found |= std::holds_alternative<ConditionalWork>(work); });
  return found;
}

std::shared_ptr<Graph> copyOf(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph.id);
  std::unordered_map<const GraphNode*, GraphNode*> copies;
  for (const auto& node : graph.nodes) {
    GraphNode& copied = copy->add(copyOf(node->work), node->id);
    copied.enabled = node->enabled;
    copies[node.get()] = &copied;
  }
  for (const auto& node : graph.nodes) {
    GraphNode& copied = *copies[node.get()];
    for (const Edge& edge : node->dependencies)
      copied.dependencies.push_back({copies[edge.node], edge.data});
    for (const GraphNode* dependent : node->dependents)
      copied.dependents.push_back(copies[dependent]);
  }
  copy->userObjects.copy(graph.userObjects);
  return copy;
}

void list(const std::shared_ptr<GraphNode>& node) {
  Handles<GraphNode>::all().add(node);
  for (const auto& inner : graphsIn(node->work)) list(inner);
}

void list(const std::shared_ptr<Graph>& graph) {
  graph->listed = true;
  Handles<Graph>::all().add(graph);
  for (const auto& node : graph->nodes) list(node);
}

void unlist(Graph& graph) {
  for (const auto& node : graph.nodes) {
    Handles<GraphNode>::all().remove(node.get());
    for (const auto& inner : graphsIn(node->work)) unlist(*inner);
  }
  graph.listed = false;
  Handles<Graph>::all().remove(&graph);
}

}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuGraphCreate(CUgraph* phGraph, unsigned int flags) {
  return inDriver([&]() -> CUresult {
    if (phGraph == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const auto graph = std::make_shared<Graph>();
    list(graph);
    *phGraph = handleOf<CUgraph>(graph.get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphDestroy(CUgraph hGraph) {
  return inDriver([&]() -> CUresult {
    std::shared_ptr<Graph> ended;  // its end may free memory, which needs other locks
    const std::lock_guard lock(graphMutex());
    ended = Handles<Graph>::all().find(hGraph);
    if (ended == nullptr || ended->embedded || ended->capturing) return CUDA_ERROR_INVALID_VALUE;
    unlist(*ended);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphClone(CUgraph* phGraphClone, CUgraph originalGraph) {
  return onGraph(originalGraph, [&](Graph& original) -> CUresult {
    if (phGraphClone == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (original.hasMemoryNodes() || original.hasConditionalNodes())
      return CUDA_ERROR_NOT_SUPPORTED;
    const auto copy = copyOf(original);
    list(copy);
    *phGraphClone = handleOf<CUgraph>(copy.get());
    return CUDA_SUCCESS;
  });
}

/// A node of a child graph is found only in the child's copy.
DRIVER_CALL cuGraphNodeFindInClone(CUgraphNode* phNode, CUgraphNode hOriginalNode,
                                   CUgraph hClonedGraph) {
  return onGraph(hClonedGraph, [&](Graph& clone) -> CUresult {
    const auto original = Handles<GraphNode>::all().find(hOriginalNode);
    if (phNode == nullptr || original == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto found = std::ranges::find(clone.nodes, original->id, &GraphNode::origin);
    if (found == clone.nodes.end()) return CUDA_ERROR_INVALID_VALUE;
    *phNode = handleOf<CUgraphNode>(found->get());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                    unsigned int flags) {
  return onGraph(graph, [&](Graph& owner) -> CUresult {
    const auto found = findUserObject(object, count);
    if (found == nullptr || (flags & ~static_cast<unsigned>(CU_GRAPH_USER_OBJECT_MOVE)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    return owner.userObjects.retain(found, count, flags == CU_GRAPH_USER_OBJECT_MOVE)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count) {
  return onGraph(graph, [&](Graph& owner) -> CUresult {
    const auto found = findUserObject(object, count);
    return found != nullptr && owner.userObjects.release(found, count) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
  });
}
