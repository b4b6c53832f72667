// The parameters of nodes, as the driver has them. What they point to belongs to the node, and the
// program may read it until the node ends or is changed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

/// Asks the worker; pointers in `params` stay valid as CUDA says.
CUresult fetchNodeParams(CUgraphNode node, CUgraphNodeType type, CUgraphNodeParams& params);

/// Keeps the array of a conditional node's graphs. `root`: the graph with which it ends.
CUgraph* keepBodies(CUgraphNode node, CUgraph root, std::size_t count, const std::uint64_t* graphs);

/// A node has ended.
void forgetNode(CUgraphNode node);
/// A graph has ended, with all its nodes and child graphs.
void forgetGraph(CUgraph graph);

}  // namespace interposer
