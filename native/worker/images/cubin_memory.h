// The device memory that machine code (an ELF file, a "cubin") takes: its code, its constants and
// its variables. Also the names of its symbols.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace worker {

struct CubinMemory {
  std::uint64_t bytes = 0;  ///< never more than 2^50
  const char* refusal =
      nullptr;  ///< why the file is not one that the driver may see; null when it is
  /// The names of the symbols, each with its end, as the image holds them.
  std::vector<std::string_view> names;
};

/// Reads headers, sections and symbols. All of them lie inside of `image` when there is no refusal.
CubinMemory cubinMemory(std::span<const std::byte> image);

}  // namespace worker
