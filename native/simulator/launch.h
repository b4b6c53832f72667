// Parameters of a launch, before it becomes an operation of a stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "native/simulator/launch_limits.h"

namespace simulator {

class Stream;

/// Reads the arguments of a kernel from an array of pointers or from the buffer of `extra`.
CUresult readParameters(const KernelInfo& info, void** kernelParams, void** extra,
                        std::vector<std::byte>& parameters);
/// Applies a launch attribute. Hints are accepted without effect. False if the attribute is
/// unknown.
bool apply(CUlaunchAttributeID id, const CUlaunchAttributeValue& value, LaunchRequest& request);
/// Runs a kernel on this thread; an error becomes the fault of the process. Its output is in stdout
/// when this returns. `images`: the textures and surfaces of the time when it was launched; null:
/// those of now.
void run(const Function& function, const LaunchRequest& request,
         const std::vector<std::byte>& parameters, std::shared_ptr<const Images> images = nullptr);

}  // namespace simulator
