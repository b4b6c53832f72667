// State that a launch by the host shares with all grids that descend from it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "native/simulator/engine.h"

namespace simulator::ptx {

/// A grid that cudaGetParameterBufferV2 has prepared and that is not launched yet.
struct PreparedLaunch {
  const Program* program = nullptr;
  std::size_t kernel = 0;
  std::array<std::uint32_t, 3> grid{}, block{};
  std::uint32_t dynamicSharedBytes = 0;
};

/// All grids that come of one launch by the host.
struct Family {
  const Environment& environment;
  const bool serial;                         ///< one grid after the other: for checks
  std::atomic<int> result{CUDA_SUCCESS};     ///< the first fault ends all of them
  std::atomic<std::uint64_t> pending{0};     ///< launches that have not begun
  std::atomic<std::uint64_t> handles{4096};  ///< the next handle of a stream or event

  std::mutex mutex;                                  ///< guards the member below
  std::map<std::uint64_t, PreparedLaunch> prepared;  ///< by the address of its parameter buffer

  Family(const Environment& services, bool alone) : environment(services), serial(alone) {}
  /// Gives back the buffers that were prepared but not launched.
  ~Family() {
    for (const auto& [buffer, launch] : prepared) environment.runtime->release(buffer);
  }
  bool stopped() const { return result.load(std::memory_order_relaxed) != CUDA_SUCCESS; }
};

}  // namespace simulator::ptx
