// A kernel's parameters as pointers into their buffer, for calls that do not accept the buffer.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cuda_abi.h"

namespace worker {

class Thread;

/// One pointer per parameter; nothing if the buffer does not have exactly the kernel's parameters,
/// or if these are not known.
std::optional<std::vector<void*>> pointersInto(const Thread& thread, CUfunction function,
                                               std::span<const std::byte> parameters);

}  // namespace worker
