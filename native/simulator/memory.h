// Device memory of a context.
#pragma once

#include <cstddef>
#include <cstdint>

#include "native/simulator/allocations.h"

namespace simulator {

/// Allocates memory of the context's device and lists it in Allocations. Returns 0 if the device is
/// full.
std::uint64_t allocate(Context& context, std::size_t bytes, MemoryKind kind);
/// Memory for managed variables of a library, which all contexts reach. Returns 0 without
/// addresses.
std::uint64_t allocateShared(std::size_t bytes);
/// Frees the allocation that begins at the address, if there is one.
void releaseAt(std::uint64_t address);
/// Frees the memory of an allocation that was removed from Allocations.
void release(const Allocation& allocation);
/// Unmaps memory of cuMemHostAlloc.
void freeHostPages(const Allocation& allocation);
/// Frees the remaining memory of a context that ends.
void freeAll(Context& context);
/// Waits until no kernel or copy of any context can use memory that is about to be freed.
void synchronizeAll();

/// Whether a copy may access [address, address + bytes): it lies inside one allocation, or inside
/// mapped memory side by side.
bool insideAllocation(std::uint64_t address, std::size_t bytes);
/// The same for a destination: registered host memory may be read-only.
bool insideWritable(std::uint64_t address, std::size_t bytes);
/// The same for memory of cuMemMap, which may be unmapped while work runs.
bool insideMapped(std::uint64_t address, std::size_t bytes);

}  // namespace simulator
