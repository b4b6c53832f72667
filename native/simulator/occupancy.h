// How many blocks of a kernel fit on a multiprocessor.
#pragma once

#include <cstddef>

#include "native/simulator/module.h"

namespace simulator {

/// Registers of a thread: the engine's estimate, at least 16 and at most 255.
unsigned registersOf(const KernelInfo& info);
/// Threads that a block of the kernel may have.
unsigned threadLimit(const KernelInfo& info);
/// Blocks of `threads` threads with `dynamicShared` bytes that one multiprocessor holds; 0 when not even one fits or the function does
/// not allow so much.
unsigned blocksPerMultiprocessor(const Function& function, unsigned threads, std::size_t dynamicShared);

}  // namespace simulator
