// Managed memory whose pages lie with the GPU or with the program. Before work is submitted, all
// that the program has written goes to the GPU; an access by the program brings a part back.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_abi.h"

namespace interposer {

/// Whether memory of this size may move in this session.
bool canMove(std::size_t bytes);
/// CUDA_ERROR_OUT_OF_MEMORY also if the system does not offer what is needed: then use pinned
/// memory.
CUresult allocateMoving(std::size_t bytes, std::uint64_t& address);
/// Frees it after the GPU's last use.
CUresult freeMoving(std::uint64_t address);

/// Whether allocateMoving() made the memory around the address.
bool moves(std::uint64_t address);
/// Whether the GPU has, or will have, these addresses in its own memory. It gets a place there.
bool isOnGpu(std::uint64_t address);
/// The GPU shall use it where the program has it. Without effect once it has a place.
CUresult keepWithProgram(std::uint64_t address);
/// Prefetches. The program's copies in [begin, end) go to the GPU, or come back. After an error the
/// program still has its copies, and the GPU must not use them.
CUresult moveToGpu(std::uint64_t begin, std::uint64_t end);
void moveToProgram(std::uint64_t begin, std::uint64_t end);

}  // namespace interposer
