// The simulated machine, as described by environment variables. Shared by the simulated driver and
// NVML.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "cuda_abi.h"

namespace simulator {

inline constexpr int kNewestApi = 13000;
inline constexpr int kMaxDevices = 64;
/// PCI bus of the first GPU; each has a bus of its own.
inline constexpr int kFirstBus = 0x17;

/// NVIDIA_VIRTUAL_SIMULATED_GPUS
int deviceCount();
/// NVIDIA_VIRTUAL_SIMULATED_MEMORY: bytes of a GPU. Of several sizes, separated by commas, each is
/// for one GPU, and the last one for all further GPUs.
std::size_t deviceMemory(int index);
/// NVIDIA_VIRTUAL_SIMULATED_CONTEXT: bytes that a context holds before any allocation; empty if the
/// variable is not set.
std::optional<std::size_t> contextMemory();
/// NVIDIA_VIRTUAL_SIMULATED_COMPUTE_CAPABILITY: 75 for 7.5; 90 if the variable is not set or not a
/// compute capability.
unsigned computeCapability();
/// NVIDIA_VIRTUAL_SIMULATED_DRIVER_VERSION: 12040 for "12.4". Anything else means the version of
/// this library. For tests of nodes with another driver.
int driverVersionFromEnvironment();
/// Whether the file of NVIDIA_VIRTUAL_SIMULATED_FAILURES lists the index, one per line: that GPU
/// has fallen off the bus.
bool hasFailed(int index);

/// UUID of a GPU; constant for each index.
CUuuid uuidOf(int index);
/// GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
std::string uuidText(const CUuuid& uuid);

}  // namespace simulator
