// The file in which the simulated GPUs keep what all processes of the node hold
// (native/simulator/shared_state.h).
#pragma once

#include <string>

namespace worker {

/// Opens `file` for the simulated driver or NVML that this process loads afterwards, and makes it
/// if it is missing. Called before the process becomes another user, who cannot open it. An empty
/// name does nothing. A sentence when it cannot be opened.
std::string shareSimulatedState(const std::string& file);

}  // namespace worker
