// The device memory that a code image takes when it is loaded: its code, its constants and, above all, its variables, for
// `__device__ char x[1 << 30]` is a way of getting memory too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace worker {

/// Whether an ELF file, a fat binary or PTX text names the device's printf; true also when that cannot be told.
bool imageMayPrint(std::span<const std::byte> image);

/// Bytes of an ELF file, a fat binary or PTX text; of the entries of a fat binary, which are alternatives, the largest. 0 for what is none.
std::uint64_t imageMemory(std::span<const std::byte> image);

}  // namespace worker
