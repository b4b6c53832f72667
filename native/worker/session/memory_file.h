// Facts about a file of the client.
#pragma once

#include <cstdint>

namespace worker {

/// Size of the file's pages; 0 if it is unknown. The kernel rounds a mapping up to whole pages of
/// the file, so that it may replace more than was asked for: huge pages have up to 1 GiB.
std::uint64_t pageBytes(int file);

}  // namespace worker
