// Host functions of graphs. A graph, its clones and its executable graphs may run one any number of
// times, and none of them says when it is gone. So each pair of function and argument has one
// record, which lives as long as the session.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "cuda_abi.h"

namespace worker {

class Session;

struct HostFunction {
  Session& session;
  std::uint64_t function;  ///< address in the client
  std::uint64_t userData;  ///< of the client
};

/// Thread-safe.
class HostFunctions {
 public:
  explicit HostFunctions(Session& session) : session_(session) {}

  HostFunction* of(std::uint64_t function, std::uint64_t userData) {
    const std::lock_guard lock(mutex_);
    const auto [found, isNew] = records_.try_emplace(std::pair(function, userData),
                                                     HostFunction{session_, function, userData});
    return &found->second;
  }

 private:
  Session& session_;
  std::mutex mutex_;
  std::map<std::pair<std::uint64_t, std::uint64_t>, HostFunction> records_;
};

/// What the driver calls for a HostFunction: runs it in the client, and returns when it has
/// returned.
void runInClient(void* hostFunction);

}  // namespace worker
