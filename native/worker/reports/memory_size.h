// Formats a size of memory for users.
#pragma once

#include <cstdint>
#include <string>

namespace worker {

/// As gpu-proxy writes it: `512 MiB`, `1.5 GiB`, `100 bytes`.
std::string formatMemorySize(std::uint64_t bytes);

}  // namespace worker
