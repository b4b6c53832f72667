// Updates of executable graphs from a graph of the same shape.
#include "native/simulator/graph_update.h"

#include <unordered_map>
#include <utility>

namespace simulator {
namespace {

Context* contextOf(const KernelWork& kernel) { return &kernel.function->module.context; }

/// The memory that a node allocates or frees; null for other types.
const GraphMemory* memoryOf(const Work& work) {
  if (const auto* allocating = std::get_if<AllocateWork>(&work)) return allocating->memory.get();
  const auto* freeing = std::get_if<FreeWork>(&work);
  return freeing == nullptr ? nullptr : freeing->memory.get();
}

/// Pairs the nodes of an executable graph with those of a graph, from the last ones on.
class Pairing {
 public:
  bool pairGraphs(Graph& exec, const Graph& graph) {
    if (exec.nodes.size() != graph.nodes.size()) return topology(nullptr);
    const auto old = exits(exec), fresh = exits(graph);
    if (old.size() != fresh.size()) return topology(fresh.empty() ? nullptr : fresh.back());
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (!pair(*old[i], *fresh[i])) return topology(fresh[i]);
      while (!open_.empty()) {
        auto [before, after] = open_.back();
        open_.pop_back();
        if (!compare(*before, *after)) return false;
      }
    }
    return true;
  }

  /// Gives each executable node the work of the node that it is paired with.
  void apply() {
    for (const auto& [before, after] : pairs_) {
      if (auto* conditional = std::get_if<ConditionalWork>(&before->work))
        conditional->condition = std::get<ConditionalWork>(after->work).condition;
      else if (!std::holds_alternative<ChildWork>(before->work))
        before->work = after->work;
    }
  }

  Mismatch mismatch;

 private:
  template <class SomeGraph>
  static std::vector<GraphNode*> exits(SomeGraph& graph) {
    std::vector<GraphNode*> found;
    for (const auto& node : graph.nodes) {
      if (node->dependents.empty()) found.push_back(node.get());
    }
    return found;
  }

  bool topology(const GraphNode* node, const GraphNode* from = nullptr) {
    mismatch = {CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, from};
    return false;
  }

  /// False if one of the two is paired with another node.
  bool pair(GraphNode& before, GraphNode& after) {
    const auto [there, added] = pairs_.emplace(&before, &after);
    if (!added) return there->second == &after;
    if (!partners_.emplace(&after, &before).second) return false;
    open_.push_back({&before, &after});
    return true;
  }

  bool compare(GraphNode& before, const GraphNode& after) {
    if (before.work.index() != after.work.index()) {
      mismatch = {CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, &after, nullptr};
      return false;
    }
    if (before.dependencies.size() != after.dependencies.size()) return topology(&after);
    for (std::size_t i = 0; i < before.dependencies.size(); ++i) {
      GraphNode* dependency = after.dependencies[i].node;
      if (!pair(*before.dependencies[i].node, *dependency)) return topology(&after, dependency);
    }
    const CUgraphExecUpdateResult refused = refuse(before.work, after.work);
    if (refused != CU_GRAPH_EXEC_UPDATE_SUCCESS) {
      mismatch = {refused, &after, nullptr};
      return false;
    }
    const auto old = graphsIn(before.work), fresh = graphsIn(after.work);
    for (std::size_t i = 0; i < old.size(); ++i) {
      Pairing inner;
      const bool same = inner.pairGraphs(*old[i], *fresh[i]);
      mismatch = inner.mismatch;
      pairs_.insert(inner.pairs_.begin(), inner.pairs_.end());
      if (!same) return false;
    }
    return true;
  }

  std::unordered_map<GraphNode*, GraphNode*> pairs_;     ///< executable node -> node
  std::unordered_map<GraphNode*, GraphNode*> partners_;  ///< node -> executable node
  std::vector<std::pair<GraphNode*, GraphNode*>> open_;  ///< pairs that were not compared yet
};

}  // namespace

CUgraphExecUpdateResult refuse(const Work& was, const Work& is) {
  if (const auto* before = std::get_if<KernelWork>(&was)) {
    const auto& after = std::get<KernelWork>(is);
    if (contextOf(*before) != contextOf(after))
      return CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
    if (before->effective().cooperative != after.effective().cooperative)
      return CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;
  }
  if (const auto* before = std::get_if<CopyWork>(&was)) {
    const auto& after = std::get<CopyWork>(is);
    if (before->parameters.srcMemoryType != after.parameters.srcMemoryType ||
        before->parameters.dstMemoryType != after.parameters.dstMemoryType ||
        before->context != after.context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* before = std::get_if<MemsetWork>(&was)) {
    const auto& a = before->parameters;
    const auto& b = std::get<MemsetWork>(is).parameters;
    const bool sameShape = a.width == b.width && a.elementSize == b.elementSize;
    if (a.height != b.height || (a.height > 1 && (!sameShape || a.pitch != b.pitch)))
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (const auto* before = std::get_if<ConditionalWork>(&was)) {
    const auto& after = std::get<ConditionalWork>(is);
    if (before->type != after.type || before->bodies.size() != after.bodies.size() ||
        &before->condition->context != &after.condition->context)
      return CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
  }
  if (memoryOf(was) != memoryOf(is)) return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult update(GraphExec& exec, Graph& target, const Graph& graph, Mismatch& mismatch) {
  Pairing pairing;
  if (!pairing.pairGraphs(target, graph)) {
    mismatch = pairing.mismatch;
    return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  }
  pairing.apply();
  exec.plan = nullptr;
  return CUDA_SUCCESS;
}

}  // namespace simulator

using namespace simulator;

namespace {

CUresult updateWhole(CUgraphExec hGraphExec, CUgraph hGraph, Mismatch& mismatch) {
  mismatch.result = CU_GRAPH_EXEC_UPDATE_ERROR;
  return onGraphExec(hGraphExec, [&](GraphExec& exec) -> CUresult {
    const auto graph = Handles<Graph>::all().find(hGraph);
    if (graph == nullptr || graph->embedded || graph->capturing) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = update(exec, *exec.graph, *graph, mismatch);
    if (status == CUDA_SUCCESS) mismatch = {};
    return status;
  });
}

}  // namespace

DRIVER_CALL cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
                                 CUgraphExecUpdateResultInfo* resultInfo) {
  Mismatch mismatch;
  const CUresult status = updateWhole(hGraphExec, hGraph, mismatch);
  if (resultInfo != nullptr)
    *resultInfo = {mismatch.result, handleOf<CUgraphNode>(mismatch.node),
                   handleOf<CUgraphNode>(mismatch.from)};
  return status;
}

DRIVER_CALL cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
                              CUgraphExecUpdateResult* updateResult_out) {
  CUgraphExecUpdateResultInfo info{};
  const CUresult status = cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);
  if (hErrorNode_out != nullptr) *hErrorNode_out = info.errorNode;
  if (updateResult_out != nullptr) *updateResult_out = info.result;
  return status;
}
