// memcpy on several threads: one core is slower than the GPU's bus.
#pragma once

#include <cstddef>

namespace interposer {

/// A smaller copy is done by the calling thread alone.
inline constexpr std::size_t kSharedCopyBytes = std::size_t{2} << 20;

/// Copies with the calling thread and, for a large copy, as many helpers as the process may use
/// cores for (three at most).
void parallelCopy(void* destination, const void* source, std::size_t bytes);

}  // namespace interposer
