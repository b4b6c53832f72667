// Executable graphs: instantiation, launch and end. Updates are in graph_update.cpp.
#include "native/simulator/graph_exec.h"

#include <utility>

#include "native/simulator/fault.h"
#include "native/simulator/graph_exec_memory.h"
#include "native/simulator/stream_capture.h"

using namespace simulator;

namespace {

constexpr unsigned long long kFlags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
    CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

struct Failure {
  CUgraphInstantiateResult result = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  const GraphNode* node = nullptr;
};

/// Bodies of conditional nodes take neither host functions, nor events, nor memory operations.
bool fitsBody(const Work& work) {
  return std::holds_alternative<KernelWork>(work) || std::holds_alternative<CopyWork>(work) ||
         std::holds_alternative<MemsetWork>(work) || std::holds_alternative<ChildWork>(work) ||
         std::holds_alternative<EmptyWork>(work) || std::holds_alternative<ConditionalWork>(work);
}

/// Checks a graph and the graphs in it before they become executable.
CUresult validate(const Graph& graph, bool inBody, Failure& failure) {
  for (const auto& condition : graph.conditions) {
    if (condition->used) continue;
    failure.result = CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!graph.nodes.empty() && graph.ordered().empty()) {
    failure = {CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, graph.nodes.front().get()};
    return CUDA_ERROR_INVALID_VALUE;
  }
  for (const auto& node : graph.nodes) {
    const bool conditional = std::holds_alternative<ConditionalWork>(node->work);
    CUresult status =
        inBody && !fitsBody(node->work) ? CUDA_ERROR_INVALID_VALUE : checkWork(node->work);
    for (const auto& inner : graphsIn(node->work)) {
      if (status == CUDA_SUCCESS) status = validate(*inner, inBody || conditional, failure);
    }
    if (status == CUDA_SUCCESS) continue;
    if (failure.node == nullptr) failure.node = node.get();
    return status;
  }
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* phGraphExec, Graph& graph, unsigned long long flags,
                     Failure& failure) {
  failure.result = CUDA_GRAPH_INSTANTIATE_ERROR;
  if (phGraphExec == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    const bool freesFirst = (flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
    return freesFirst ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
  if (graph.isChild()) return CUDA_ERROR_NOT_SUPPORTED;
  if (graph.embedded || graph.capturing) return CUDA_ERROR_INVALID_VALUE;
  const bool single = graph.hasMemoryNodes() || graph.hasConditionalNodes();
  if (single && !graph.executable.expired()) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult status = validate(graph, false, failure);
  if (status != CUDA_SUCCESS) return status;
  auto exec = std::make_shared<GraphExec>(
      copyOf(graph), flags & ~static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
  graph.executable = exec;
  *phGraphExec = handleOf<CUgraphExec>(exec.get());
  Handles<GraphExec>::all().add(std::move(exec));
  failure = {};
  return CUDA_SUCCESS;
}

/// Runs body(Graph&) of an instantiation, which a capture may forbid.
template <class Body>
CUresult instantiating(CUgraph hGraph, Body&& body) {
  return inContext([&](Context&) -> CUresult {
    const CUresult status = unsafeInCapture();
    return status == CUDA_SUCCESS ? onGraph(hGraph, body) : status;
  });
}

CUresult instantiateLogged(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                           char* logBuffer, size_t bufferSize) {
  return instantiating(hGraph, [&](Graph& graph) {
    Failure failure;
    const CUresult status = instantiate(phGraphExec, graph, 0, failure);
    if (phErrorNode != nullptr) *phErrorNode = handleOf<CUgraphNode>(failure.node);
    if (logBuffer != nullptr && bufferSize > 0) *logBuffer = 0;
    return status;
  });
}

/// Notes the launch, and returns what it runs.
CUresult prepare(GraphExec& exec, std::shared_ptr<const Plan>& plan) {
  const std::lock_guard lock(graphMutex());
  const bool freeFirst = (exec.flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  const CUresult status = prepareMemory(*exec.graph, freeFirst);
  if (status != CUDA_SUCCESS) return status;
  if (exec.plan == nullptr) exec.plan = std::make_shared<const Plan>(planOf(*exec.graph));
  plan = exec.plan;
  return CUDA_SUCCESS;
}

CUresult launch(GraphExec& exec, Stream& stream) {
  const std::lock_guard lock(exec.launching);
  std::shared_ptr<const Plan> plan;
  const CUresult status = prepare(exec, plan);
  if (status != CUDA_SUCCESS) return status;
  const auto run = std::make_shared<GraphRun>(std::move(plan));
  Operation operation;
  operation.run = [run, graph = exec.graph] { run->execute(); };
  if (exec.last != nullptr && !exec.last->done()) operation.after.push_back(exec.last);
  exec.last = stream.submit(std::move(operation));
  const std::lock_guard graphs(graphMutex());
  noteUse(*exec.graph, exec.last);
  return CUDA_SUCCESS;
}

CUresult upload(GraphExec& exec) {
  const std::lock_guard lock(graphMutex());
  return chargeMemory(*exec.graph);
}

/// Runs body(GraphExec&, Stream&).
template <class Body>
CUresult inStream(CUgraphExec hGraphExec, CUstream hStream, Body&& body) {
  return onStream(hStream, [&](Context&, Stream& stream) -> CUresult {
    const auto exec = Handles<GraphExec>::all().find(hGraphExec);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const CUresult status = refusedInCapture(stream);
    return status == CUDA_SUCCESS ? body(*exec, stream) : status;
  });
}

}  // namespace

DRIVER_CALL cuGraphInstantiateWithFlags(CUgraphExec* phGraphExec, CUgraph hGraph,
                                        unsigned long long flags) {
  return instantiating(hGraph, [&](Graph& graph) -> CUresult {
    Failure failure;
    if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) return CUDA_ERROR_INVALID_VALUE;
    return instantiate(phGraphExec, graph, flags, failure);
  });
}

DRIVER_CALL cuGraphInstantiate(CUgraphExec* phGraphExec, CUgraph hGraph, CUgraphNode* phErrorNode,
                               char* logBuffer, size_t bufferSize) {
  return instantiateLogged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}
DRIVER_CALL cuGraphInstantiate_v2(CUgraphExec* phGraphExec, CUgraph hGraph,
                                  CUgraphNode* phErrorNode, char* logBuffer, size_t bufferSize) {
  return instantiateLogged(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

DRIVER_CALL cuGraphInstantiateWithParams(CUgraphExec* phGraphExec, CUgraph hGraph,
                                         CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams) {
  if (instantiateParams == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Failure failure{CUDA_GRAPH_INSTANTIATE_ERROR, nullptr};
  CUresult status = instantiating(hGraph, [&](Graph& graph) {
    return instantiate(phGraphExec, graph, instantiateParams->flags, failure);
  });
  instantiateParams->hErrNode_out = handleOf<CUgraphNode>(failure.node);
  instantiateParams->result_out = failure.result;
  if (status == CUDA_SUCCESS &&
      (instantiateParams->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
    status = cuGraphUpload(*phGraphExec, instantiateParams->hUploadStream);
  return status;
}

DRIVER_CALL cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return inStream(hGraphExec, hStream, launch);
}

DRIVER_CALL cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  return inStream(hGraphExec, hStream, [](GraphExec& exec, Stream&) { return upload(exec); });
}

DRIVER_CALL cuGraphExecDestroy(CUgraphExec hGraphExec) {
  return inDriver([&]() -> CUresult {
    // A launch in flight keeps what it needs.
    const auto ended = Handles<GraphExec>::all().remove(hGraphExec);
    return ended == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
  });
}

DRIVER_CALL cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t* flags) {
  return onGraphExec(hGraphExec, [&](GraphExec& exec) -> CUresult {
    if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *flags = exec.flags;
    return CUDA_SUCCESS;
  });
}
