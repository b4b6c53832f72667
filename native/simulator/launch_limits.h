// Which launches the driver refuses.
#pragma once

#include <array>

#include "native/simulator/module.h"

namespace simulator {

struct LaunchRequest {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> cluster{1, 1, 1};
  bool clusterGiven = false;
  unsigned dynamicShared = 0;
  bool cooperative = false;
};

/// Returns the error of a launch that the driver refuses at once, or CUDA_SUCCESS.
CUresult check(const Function& function, const LaunchRequest& request);

}  // namespace simulator
