// Private pages of the program on a memory file, in place: so that the worker can map them too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "wire/memory_maps.h"

namespace interposer {

struct MovedFile {
  std::string identity;  ///< of its mappings (MemoryMap::file); empty: no file
  std::uint64_t bytes = 0;
  explicit operator bool() const { return !identity.empty(); }
};

/// Moves the private pages [begin, end) onto the file, from its start on. Rights stay as they are.
/// Returns no file, with nothing moved, if it cannot be done.
MovedFile moveToFile(std::uint64_t begin, std::uint64_t end, int file);

/// Makes all mappings of the file private again, wherever the program has moved them. Frees the
/// pages of the file. Must not run while another thread unmaps them.
void bringBack(const MovedFile& file);

/// All mappings of the file, in order of their offsets.
std::vector<wire::MemoryMap> mappingsOf(const MovedFile& file);
/// Makes these mappings private in a forked child; the parent keeps the file's pages. The heap may
/// be in them, so nothing is allocated, and the mappings were looked up before the fork.
void copyInChild(const std::vector<wire::MemoryMap>& maps, std::uint64_t fileBytes);

}  // namespace interposer
