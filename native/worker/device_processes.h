// Which processes hold how much memory of which GPU, as NVML knows it: what the quota's account is compared with.
#pragma once

#include <string>

namespace worker {

/// Prints it as one JSON object; `library` is libnvidia-ml.so.1. Returns the exit status.
int printDeviceProcesses(const std::string& library);

}  // namespace worker
