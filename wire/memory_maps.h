// The mappings of this process, from /proc/self/maps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wire {

struct MemoryMap {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  int protection = 0;  ///< PROT_READ, PROT_WRITE, PROT_EXEC
  bool shared = false;
  std::uint64_t offset = 0;  ///< in the file
  std::string file;          ///< device and inode: equal for mappings of one file
  std::uint64_t inode = 0;   ///< 0: anonymous
  std::string path;
};

/// The mappings that overlap [begin, end), in order. Empty if the system does not say.
std::vector<MemoryMap> memoryMaps(std::uint64_t begin, std::uint64_t end);

/// Whether [begin, end) is mapped without a gap, and every page has these rights.
bool isMapped(std::uint64_t begin, std::uint64_t end, int protection);

}  // namespace wire
