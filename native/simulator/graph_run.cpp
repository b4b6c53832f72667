#include "native/simulator/graph_run.h"

#include <unordered_map>
#include <utility>

#include "native/simulator/event.h"
#include "native/simulator/fault.h"
#include "native/simulator/graph.h"
#include "native/simulator/helper_threads.h"

namespace simulator {
namespace {

/// The steps at which a node begins and ends; they differ for a child graph.
struct Span {
  std::size_t first, last;
};

void follow(Plan& plan, std::size_t before, std::size_t after) {
  plan[before].next.push_back(after);
  ++plan[after].dependencies;
}

Span append(Plan& plan, const Graph& graph);

/// Runs the body that the condition chooses.
std::function<void()> choice(const ConditionalWork& conditional) {
  std::vector<std::shared_ptr<const Plan>> bodies;
  for (const auto& body : conditional.bodies) {
    Plan plan;
    append(plan, *body);
    bodies.push_back(std::make_shared<const Plan>(std::move(plan)));
  }
  return [condition = conditional.condition, type = conditional.type, bodies = std::move(bodies)] {
    do {
      const std::uint32_t value = condition->value;
      const std::size_t chosen = type == CU_GRAPH_COND_TYPE_SWITCH ? value : value == 0;
      if (chosen >= bodies.size()) return;
      std::make_shared<GraphRun>(bodies[chosen])->execute();
    } while (type == CU_GRAPH_COND_TYPE_WHILE && fault() == CUDA_SUCCESS);
  };
}

Span append(Plan& plan, const GraphNode& node) {
  const auto* child = std::get_if<ChildWork>(&node.work);
  if (child != nullptr) return append(plan, *child->graph);
  const std::size_t at = plan.size();
  Step& step = plan.emplace_back();
  if (!node.enabled) return {at, at};
  const auto* conditional = std::get_if<ConditionalWork>(&node.work);
  step.run = conditional == nullptr ? runnable(node.work) : choice(*conditional);
  if (const auto* record = std::get_if<RecordWork>(&node.work)) step.record = record->event;
  if (const auto* wait = std::get_if<WaitWork>(&node.work)) step.wait = wait->event;
  return {at, at};
}

/// Appends a begin, the nodes of the graph, and an end.
Span append(Plan& plan, const Graph& graph) {
  const std::size_t begin = plan.size();
  plan.emplace_back();
  std::unordered_map<const GraphNode*, Span> spans;
  for (const GraphNode* node : graph.ordered()) {
    const Span span = append(plan, *node);
    spans[node] = span;
    for (const Edge& edge : node->dependencies) follow(plan, spans[edge.node].last, span.first);
    if (node->dependencies.empty()) follow(plan, begin, span.first);
  }
  const std::size_t end = plan.size();
  plan.emplace_back();
  follow(plan, begin, end);
  for (const auto& [node, span] : spans) {
    if (node->dependents.empty()) follow(plan, span.last, end);
  }
  return {begin, end};
}

}  // namespace

Plan planOf(const Graph& graph) {
  Plan plan;
  append(plan, graph);
  std::vector<std::shared_ptr<Condition>> conditions;
  eachWork(graph, [&](const Work& work) {
    if (const auto* conditional = std::get_if<ConditionalWork>(&work))
      conditions.push_back(conditional->condition);
  });
  if (!conditions.empty()) {
    plan.front().run = [conditions] {
      for (const auto& condition : conditions) condition->value = condition->initial;
    };
  }
  return plan;
}

GraphRun::GraphRun(std::shared_ptr<const Plan> plan)
    : plan_(std::move(plan)),
      recorded_(plan_->size()),
      awaited_(plan_->size()),
      shared_(plan_->size()),
      waiting_(plan_->size()),
      left_(plan_->size()) {
  for (std::size_t i = 0; i < plan_->size(); ++i) {
    const Step& step = (*plan_)[i];
    waiting_[i] = step.dependencies;
    if (step.wait != nullptr) awaited_[i] = step.wait->recording();
    if (step.wait != nullptr && step.wait->shared != nullptr)
      shared_[i] = step.wait->shared->latest();
    if (step.record == nullptr) continue;
    if (step.record->shared != nullptr) shared_[i] = step.record->shared->record();
    recorded_[i] = std::make_shared<Completion>();
    step.record->record(recorded_[i]);
  }
}

GraphRun::~GraphRun() {
  for (std::size_t i = 0; i < recorded_.size(); ++i) {
    if (recorded_[i] != nullptr && !recorded_[i]->done()) finishRecord(i);
  }
}

void GraphRun::finishRecord(std::size_t step) {
  recorded_[step]->finish();
  const auto& shared = (*plan_)[step].record->shared;
  if (shared != nullptr) shared->finish(shared_[step]);
}

void GraphRun::await(std::size_t step) {
  if (awaited_[step] != nullptr) awaited_[step]->wait();
  const auto& event = (*plan_)[step].wait;
  if (event != nullptr && event->shared != nullptr) event->shared->wait(shared_[step]);
}

void GraphRun::execute() {
  ready_.push_back(0);  // the begin of the graph
  work(false);
}

void GraphRun::run(std::size_t step) {
  await(step);
  if ((*plan_)[step].run && fault() == CUDA_SUCCESS) (*plan_)[step].run();
  if (recorded_[step] != nullptr) finishRecord(step);
}

void GraphRun::work(bool helper) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (!helper) changed_.wait(lock, [&] { return !ready_.empty() || left_ == 0; });
    if (ready_.empty()) break;
    const std::size_t step = ready_.front();
    ready_.pop_front();
    lock.unlock();
    run(step);
    lock.lock();
    --left_;
    for (const std::size_t next : (*plan_)[step].next) {
      if (--waiting_[next] == 0) ready_.push_back(next);
    }
    if (left_ == 0 || !ready_.empty()) changed_.notify_all();
    askForHelp();
  }
  if (helper) --helpers_;
}

void GraphRun::askForHelp() {
  constexpr std::size_t kEnough = 31;
  while (helpers_ < kEnough && helpers_ + 1 < ready_.size()) {
    ++helpers_;
    runOnHelperThread([self = shared_from_this()] { self->work(true); });
  }
}

}  // namespace simulator
