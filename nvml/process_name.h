// The names of processes.
#pragma once

#include "nvml/abi.h"

namespace nvml {

/// Writes the first word of the command line; a longer one is cut. kNotFound, and an empty text, if
/// there is no such process.
Return readProcessName(unsigned pid, char* name, unsigned length);

}  // namespace nvml
