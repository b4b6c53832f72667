// An executable graph: a copy of a graph that streams launch.
#pragma once

#include <memory>
#include <mutex>

#include "native/simulator/completion.h"
#include "native/simulator/graph.h"
#include "native/simulator/graph_run.h"

namespace simulator {

struct GraphExec {
  GraphExec(std::shared_ptr<Graph> graph_, unsigned long long flags_)
      : graph(std::move(graph_)), flags(flags_) {}

  /// Its own nodes, whose origins are those of the graph that it was made of. In-flight launches
  /// keep them, and so the user objects. Guarded by graphMutex().
  const std::shared_ptr<Graph> graph;
  const unsigned long long flags;
  std::shared_ptr<const Plan> plan;  ///< null after a change; guarded by graphMutex()

  std::mutex launching;  ///< held while a launch is submitted; locked before graphMutex()
  std::shared_ptr<const Completion> last;  ///< the last launch; guarded by `launching`
};

/// Runs body(GraphExec&) on the executable graph that a handle names.
template <class Body>
CUresult onGraphExec(CUgraphExec handle, Body&& body) noexcept {
  return inDriver([&]() -> CUresult {
    const auto exec = Handles<GraphExec>::all().find(handle);
    if (exec == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(graphMutex());
    return body(*exec);
  });
}

}  // namespace simulator
