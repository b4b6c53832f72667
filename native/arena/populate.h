// Populates a memory file: gives it all its pages, charged to the cgroup of this process.
#pragma once

#include <cstddef>
#include <string>

namespace arena {

/// Populates the first `bytes` bytes of the file, by several threads. Pages that exist stay as they
/// are. @return an error message, or an empty string
std::string populate(int file, std::size_t bytes);

/// Populates the mapped range on a kernel without MADV_POPULATE_WRITE (before Linux 5.14). If there
/// is not enough memory, SIGBUS ends the process.
void populateByTouch(std::byte* begin, std::size_t bytes);

}  // namespace arena
