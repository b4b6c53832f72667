// Lists of nodes and edges, as the driver gives them.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "cuda_abi.h"
#include "wire/graph.h"

namespace interposer {

struct Elements {
  std::vector<CUgraphNode> nodes;
  std::vector<CUgraphNode> others;  ///< where edges lead
  std::vector<CUgraphEdgeData> edges;
};

/// Fetches a whole list.
CUresult fetchElements(wire::GraphElements which, std::uint64_t of, Elements& elements);

/// Whether an edge is not of the default kind.
inline bool haveData(std::span<const CUgraphEdgeData> edges) {
  return std::ranges::any_of(edges, [](const CUgraphEdgeData& edge) {
    return edge.from_port != 0 || edge.to_port != 0 || edge.type != 0;
  });
}

}  // namespace interposer
