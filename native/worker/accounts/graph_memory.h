// Charges the memory of graphs with memory nodes. The driver takes physical memory for them at a
// launch, keeps it between launches, and says how much only when it holds it. So the pages at the
// addresses of an executable graph's nodes are charged when it is made. Small allocations share a
// page, and the driver may give those of disjoint lifetimes the same addresses.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_set>

#include "driver.h"
#include "native/worker/accounts/quota.h"

namespace worker {

/// Thread-safe.
class GraphMemory {
 public:
  GraphMemory(const Driver& driver, Quota& quota) : driver_(driver), quota_(quota) {}

  /// `make` instantiates the graph. CUDA_ERROR_OUT_OF_MEMORY when the quota has no room for its
  /// memory nodes.
  CUresult instantiate(CUgraph graph, CUgraphExec* exec, const std::function<CUresult()>& make);
  /// Whether launches of the executable graph take memory.
  bool takesMemory(CUgraphExec exec) const;
  /// Whether a memory node of an executable graph gives this address.
  bool gives(CUdeviceptr address) const;
  /// The executable graph has ended.
  void destroyed(CUgraphExec exec);
  /// Sets the charges to what is held, even beyond the limit: after a launch or a trim.
  void settle();
  /// Has the driver release what no graph uses.
  void trim();

 private:
  using Bytes = std::map<CUdevice, std::uint64_t>;
  struct Needs {
    Bytes bytes;
    std::unordered_set<CUdeviceptr> addresses;
  };

  /// Bytes by address.
  using Ranges = std::map<CUdevice, std::map<CUdeviceptr, std::uint64_t>>;

  void collect(CUgraph graph, Ranges& ranges, unsigned depth) const;
  void collectNode(CUgraphNode node, Ranges& ranges, unsigned depth) const;
  Needs needsOf(CUgraph graph) const;
  std::uint64_t held(CUdevice device) const;
  void settleAll();

  const Driver& driver_;
  Quota& quota_;
  mutable std::mutex mutex_;
  std::map<CUgraphExec, Needs> execs_;
  std::unordered_set<CUdeviceptr> addresses_;  ///< of all, also of those that have ended
  Bytes charged_;
};

}  // namespace worker
