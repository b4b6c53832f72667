// The file behind a shared mapping of the program.
#pragma once

#include "wire/memory_maps.h"

namespace interposer {

/// Opens the file of a mapping: through a descriptor that the program still has, or by its path.
/// Writable if the mapping is. Returns -1 if neither leads to the file.
int openFileOf(const wire::MemoryMap& map);

}  // namespace interposer
