// Managed memory that moves: what client and worker must agree on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wire {

/// Alignment at which the driver reserves the address that it is asked for (measured on an H200,
/// 2026-11-24). Such memory has whole units of addresses.
inline constexpr std::uint64_t kManagedUnit = std::uint64_t{32} << 20;
/// Maximum number of ranges in one frame.
inline constexpr std::size_t kMostMoves = 1024;

constexpr std::uint64_t managedAddresses(std::uint64_t bytes) {
  return (bytes + kManagedUnit - 1) & ~(kManagedUnit - 1);
}

/// Where the GPU finds the memory.
enum class ManagedPlace : std::uint32_t {
  none,    ///< nowhere until its first use
  gpu,     ///< in its own memory; pages move
  pinned,  ///< in pinned host memory, which it shares with the program
};

}  // namespace wire
