// Host functions of graphs. A graph, its clones and its executable graphs may run one any number of
// times, and none of them says when it is gone. So the driver gets no pointer to a record of the
// node: its argument is the program's argument and the number of the function, in one word.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "cuda_abi.h"

namespace worker {

class Session;

struct HostFunction {
  Session* session;
  std::uint64_t function;  ///< address in the client
  std::uint64_t userData;  ///< of the client
};

/// Table of the process for all its sessions. Thread-safe. Entries stay. At most 65,535: one for
/// each function, and one for each argument that is no address.
class HostFunctions {
 public:
  static HostFunctions& instance();

  /// Argument for runInClient(); null if there are too many functions.
  void* argumentFor(Session& session, std::uint64_t function, std::uint64_t userData);
  /// The function of such an argument.
  HostFunction find(const void* argument) const;

 private:
  using Key = std::tuple<Session*, std::uint64_t, std::uint64_t>;

  mutable std::mutex mutex_;
  std::map<Key, std::uint64_t> numbers_;
  std::vector<HostFunction> entries_;
};

/// The driver calls this with such an argument. Runs the function in the client, and returns when
/// it has returned.
void runInClient(void* argument);

}  // namespace worker
