// The parameters of a graph's node, as the client sends them and as the driver takes them.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "cuda_abi.h"
#include "wire/decoder.h"
#include "wire/encoder.h"

namespace worker {

class Thread;

/// A frame has the structure with handles in place of objects, then what its pointers lead to: a
/// kernel's parameters in one buffer, access descriptions, or memory operations.
class NodeParams {
 public:
  NodeParams() = default;
  NodeParams(const NodeParams&) = delete;
  NodeParams& operator=(const NodeParams&) = delete;

  void decode(wire::Decoder& in);
  /// Finds the objects and checks addresses of the host. Reserves local memory for a kernel.
  CUresult resolve(Thread& thread);
  CUgraphNodeParams* get() { return &params_; }

 private:
  CUresult resolveKernel(Thread& thread);
  void passParameters(const Thread& thread, CUfunction function);
  CUresult resolveCopy(const Thread& thread);
  CUresult resolveAllocation();
  CUresult resolveOperations(const Thread& thread);

  CUgraphNodeParams params_{};
  std::vector<std::byte> content_;
  std::optional<std::vector<void*>> pointers_;
  std::size_t bytes_ = 0;
  std::array<void*, 5> extra_{};
};

/// Asks the driver for a node's parameters and writes them as the client would.
CUresult encodeNodeParams(Thread& thread, CUgraphNode node, CUgraphNodeType type,
                          wire::Encoder& out);

}  // namespace worker
