// Device memory in the name of a context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/simulator/address_space.h"

namespace simulator {

/// Memory of the context's device, listed in Allocations; 0 when the device is full.
std::uint64_t allocate(Context& context, std::size_t bytes, MemoryKind kind);
/// Gives back what an allocation (already taken out of Allocations) occupied.
void release(const Allocation& allocation);
/// Unmaps what cuMemHostAlloc mapped.
void freeHostPages(const Allocation& allocation);
/// Frees whatever the context still holds when it ends.
void freeAll(Context& context);
/// Waits until no kernel or copy of any context can use memory that is about to go.
void synchronizeAll();

/// True when [address, address + bytes) may be read and written by a copy: it lies in one allocation.
bool insideAllocation(std::uint64_t address, std::size_t bytes);

}  // namespace simulator
