// Pinned host memory: memory files that client and worker map at the same address and the driver
// has registered there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace interposer {

/// True when [address, address + bytes) is pinned memory of this process, which the worker and the
/// GPU reach at this address.
bool isPinned(const void* address, std::size_t bytes);

}  // namespace interposer
