// Formats a size of memory for users.
#pragma once

#include <cstdint>
#include <string>

namespace worker {

/// In the format of gpu-proxy: `512 MiB`, `1.5 GiB`, `100 bytes`.
std::string formatMemorySize(std::uint64_t bytes);

}  // namespace worker
