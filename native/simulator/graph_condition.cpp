#include "native/simulator/graph_condition.h"

#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace simulator {
namespace {

std::atomic<std::uint64_t> nextHandle{1};

struct Table {
  std::shared_mutex mutex;
  std::unordered_map<std::uint64_t, std::weak_ptr<Condition>> conditions;
};

/// Never destroyed, because stream threads may outlive static destructors.
Table& table() {
  static Table& instance = *new Table;
  return instance;
}

}  // namespace

Condition::Condition(Context& context_, std::uint64_t graph_, std::uint32_t initial_)
    : handle(nextHandle.fetch_add(1)), context(context_), graph(graph_), initial(initial_) {}

Condition::~Condition() {
  const std::unique_lock lock(table().mutex);
  table().conditions.erase(handle);
}

std::shared_ptr<Condition> makeCondition(Context& context, std::uint64_t graph,
                                         std::uint32_t initial) {
  auto condition = std::make_shared<Condition>(context, graph, initial);
  const std::unique_lock lock(table().mutex);
  table().conditions.emplace(condition->handle, condition);
  return condition;
}

std::shared_ptr<Condition> findCondition(std::uint64_t handle) {
  const std::shared_lock lock(table().mutex);
  const auto found = table().conditions.find(handle);
  return found == table().conditions.end() ? nullptr : found->second.lock();
}

}  // namespace simulator
