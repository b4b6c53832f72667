// Preparation of cuCheckpointProcess*.
#pragma once

namespace simulator {

/// Once per process, at its start. False without descriptors.
bool prepareCheckpoints();

}  // namespace simulator
