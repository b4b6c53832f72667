// How an executable graph runs: steps in the order of their dependencies, branches side by side.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "native/simulator/completion.h"

namespace simulator {

struct Event;
struct Graph;

/// One node, or the begin or end of a child graph.
struct Step {
  std::function<void()> run;      ///< may be empty
  std::shared_ptr<Event> record;  ///< the step records this event
  std::shared_ptr<Event> wait;    ///< the step waits for this event
  std::vector<std::size_t> next;  ///< steps that depend on this one
  std::size_t dependencies = 0;
};

/// The steps of a graph and its child graphs, each after its dependencies.
using Plan = std::vector<Step>;

/// Makes the plan of an executable graph. Disabled nodes do nothing. It begins with the initial
/// values of all conditions.
Plan planOf(const Graph& graph);

/// One launch of a plan. The thread of the stream calls execute(), unless a fault came before.
class GraphRun : public std::enable_shared_from_this<GraphRun> {
 public:
  /// Records the events of the plan: from now on, others wait for this launch.
  explicit GraphRun(std::shared_ptr<const Plan> plan);
  ~GraphRun();  ///< completes the events that a fault has left
  GraphRun(const GraphRun&) = delete;
  GraphRun& operator=(const GraphRun&) = delete;

  /// Returns when all steps have ended. Helper threads take branches that are ready.
  void execute();

 private:
  /// Runs steps that are ready; a helper leaves when there is none.
  void work(bool helper);
  void run(std::size_t step);
  void await(std::size_t step);
  void finishRecord(std::size_t step);
  /// Asks for a helper for each ready step but the one that this thread takes. Requires mutex_.
  void askForHelp();

  const std::shared_ptr<const Plan> plan_;
  std::vector<std::shared_ptr<Completion>> recorded_;       ///< by step; null: it records nothing
  std::vector<std::shared_ptr<const Completion>> awaited_;  ///< by step; null: nothing to wait for
  std::vector<std::uint64_t> shared_;  ///< by step: the record of an event that processes share

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::size_t> ready_;
  std::vector<std::size_t> waiting_;  ///< by step: dependencies that have not ended
  std::size_t left_;                  ///< steps that have not ended
  std::size_t helpers_ = 0;           ///< helpers that were asked for and have not left
};

}  // namespace simulator
