// A launch as a call described it, before it becomes an operation of a stream.
#pragma once

#include <array>
#include <cstdint>

#include "native/simulator/module.h"

namespace simulator {

class Stream;

struct LaunchRequest {
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> cluster{1, 1, 1};
  bool clusterGiven = false;
  unsigned dynamicShared = 0;
  bool cooperative = false;
};

/// What the driver refuses at once.
CUresult check(const Function& function, const LaunchRequest& request);

/// Device-side malloc and free of a context, within CU_LIMIT_MALLOC_HEAP_SIZE.
std::uint64_t heapAllocate(Context& context, std::uint64_t bytes);
void heapFree(Context& context, std::uint64_t address);

}  // namespace simulator
