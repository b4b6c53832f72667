// Conditions of graphs: values that kernels set and that conditional nodes read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace simulator {

struct Context;

struct Condition {
  Condition(Context& context_, std::uint64_t graph_, std::uint32_t initial_);
  ~Condition();
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  const std::uint64_t handle;   ///< unique in the process
  Context& context;             ///< whose kernels may set it
  const std::uint64_t graph;    ///< id of the graph that it was made for
  const std::uint32_t initial;  ///< the value at the begin of each launch
  bool used = false;            ///< a node has it; guarded by graphMutex()
  std::atomic<std::uint32_t> value{0};
};

/// Makes a condition that its handle finds until the object ends.
std::shared_ptr<Condition> makeCondition(Context& context, std::uint64_t graph,
                                         std::uint32_t initial);
/// Null if no graph has the condition. Thread-safe.
std::shared_ptr<Condition> findCondition(std::uint64_t handle);

}  // namespace simulator
