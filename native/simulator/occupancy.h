// Occupancy: number of blocks of a kernel that fit on a multiprocessor.
#pragma once

#include <cstddef>

#include "native/simulator/module.h"

namespace simulator {

/// Registers per thread: the engine's estimate, clamped to 16 to 255.
unsigned registersOf(const KernelInfo& info);
/// Maximum threads per block of the kernel.
unsigned threadLimit(const KernelInfo& info);
/// Number of blocks of `threads` threads with `dynamicShared` bytes that fit on a multiprocessor. 0
/// if none fits, or if the function does not allow so much.
unsigned blocksPerMultiprocessor(const Function& function, unsigned threads,
                                 std::size_t dynamicShared);

}  // namespace simulator
