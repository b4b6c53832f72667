// Facts about a file of another process.
#pragma once

#include <cstdint>

namespace worker {

/// Size of the file's pages; 0 if it is unknown. The kernel rounds a mapping up to whole pages of
/// the file, so that it may replace more than was asked for: huge pages have up to 1 GiB.
std::uint64_t pageBytes(int file);

/// Size of a memory file with these seals; 0 for any other file. The seals are checked first,
/// because without them the size could change at once.
std::uint64_t sealedSize(int file, int seals);

}  // namespace worker
