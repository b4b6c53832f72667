// The slow half of address checks: several allocations, windows, faults. The fast half is in
// lanes/memory.h.
#pragma once

#include <cstdint>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

/// Whether an operation writes to an address. Registered host memory may be read-only.
enum class Use : std::uint8_t { read, write };

bool misaligned(Warp& warp, const Operation* op);
bool outside(Warp& warp, const Operation* op);
bool resolveGlobal(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                   std::uint64_t* address, Use use);
/// Generic addresses of which at least one is not device memory.
bool resolveWindows(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                    std::uint64_t* address, Use use);
/// Shared addresses beyond the own block: those of other blocks of the cluster, or a fault.
bool resolveShared(Warp& warp, const Operation* op, std::uint32_t mask, std::uint64_t bytes,
                   std::uint64_t* address);

/// The address that one lane of a memory operation names.
std::uint64_t addressOfLane(Warp& warp, const Operation* op, unsigned lane);
/// A generic address of one lane as an address of this process; null when it is no memory of that
/// lane.
void* hostAddress(Warp& warp, unsigned lane, std::uint64_t generic, std::uint64_t bytes, Use use);

}  // namespace simulator::ptx
