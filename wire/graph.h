// Common part of the frames of graphs: lists in portions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

/// A list that the driver gives of a graph or of a node.
enum class GraphElements : std::uint32_t { nodes, roots, edges, dependencies, dependents };

/// Elements of a list in one reply: an edge takes 24 bytes.
inline constexpr std::size_t kElementsAtOnce = 4096;
/// Bytes of a printed graph in one reply.
inline constexpr std::size_t kTextAtOnce = std::size_t{64} << 10;

}  // namespace wire
