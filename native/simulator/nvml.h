// The simulated NVML, whose functions are in three files.
#pragma once

#include <functional>

#include "native/simulator/machine.h"
#include "nvml/abi.h"

#define NVML_CALL extern "C" __attribute__((visibility("default"))) nvml::Return

NVML_CALL nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device);

namespace simulator {

/// Runs body with the index of a device of this library.
nvml::Return onNvmlDevice(void* device, const std::function<nvml::Return(int index)>& body);

}  // namespace simulator
