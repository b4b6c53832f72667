// CUDA's device runtime, second version (libcudadevrt since CUDA 12): the functions that a kernel
// calls to launch grids, and to use streams and events of its grid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

struct Work;

/// Values of cudaError_t that are not those of a CUresult.
inline constexpr std::uint64_t kErrorInvalidConfiguration = 9, kErrorInvalidMemcpyDirection = 21,
                               kErrorLaunchMaxDepthExceeded = 65,
                               kErrorLaunchPendingCountExceeded = 69,
                               kErrorInvalidDeviceFunction = 98;

/// One call by one lane.
struct RuntimeCall {
  Warp& warp;
  unsigned lane;
  const std::uint64_t* arguments;  ///< each in as many words of 64 bits as it takes

  std::uint32_t number(std::size_t word) const {
    return static_cast<std::uint32_t>(arguments[word]);
  }
  /// Writes a result to memory of the lane. An address that is none of its own ends the launch.
  std::uint64_t write(std::uint64_t address, const void* value, std::size_t bytes) const;
  template <class T>
  std::uint64_t write(std::uint64_t address, T value) const {
    return write(address, &value, sizeof value);
  }
  /// Gives work to a stream of the grid: CUDA_ERROR_INVALID_HANDLE if there is no such stream.
  std::uint64_t submit(std::uint64_t stream, Work work) const;
  /// The error of the thread's last call that failed.
  std::uint32_t& lastError() const;
};

/// Answers the result of the function: a cudaError_t, or a pointer.
using RuntimeBody = std::uint64_t (*)(const RuntimeCall& call);

struct RuntimeFunction {
  std::string_view name;
  RuntimeBody body;
  bool returnsError = true;
};

/// Position in the table of the functions; negative if the device runtime has none of this name.
int runtimeFunction(std::string_view name);
std::uint64_t callRuntime(int function, const RuntimeCall& call);

// runtime_launch.cpp
std::uint64_t getParameterBuffer(const RuntimeCall& call);
std::uint64_t getParameterBufferV2(const RuntimeCall& call);
std::uint64_t launchDevice(const RuntimeCall& call);
std::uint64_t launchDeviceV2(const RuntimeCall& call);
std::uint64_t launchDevicePerThread(const RuntimeCall& call);
std::uint64_t launchDeviceV2PerThread(const RuntimeCall& call);
// runtime_streams.cpp
std::uint64_t streamCreateWithFlags(const RuntimeCall& call);
std::uint64_t streamDestroy(const RuntimeCall& call);
std::uint64_t streamWaitEvent(const RuntimeCall& call);
std::uint64_t streamWaitEventPerThread(const RuntimeCall& call);
std::uint64_t eventCreateWithFlags(const RuntimeCall& call);
std::uint64_t eventRecord(const RuntimeCall& call);
std::uint64_t eventRecordPerThread(const RuntimeCall& call);
std::uint64_t eventDestroy(const RuntimeCall& call);
/// The per-thread default stream if `stream` is the default stream.
std::uint64_t perThread(std::uint64_t stream);
// runtime_copies.cpp
std::uint64_t memcpyAsync(const RuntimeCall& call);
std::uint64_t memcpyAsyncPerThread(const RuntimeCall& call);
std::uint64_t memcpy2DAsync(const RuntimeCall& call);
std::uint64_t memcpy2DAsyncPerThread(const RuntimeCall& call);
std::uint64_t memcpy3DAsync(const RuntimeCall& call);
std::uint64_t memcpy3DAsyncPerThread(const RuntimeCall& call);
std::uint64_t memsetAsync(const RuntimeCall& call);
std::uint64_t memsetAsyncPerThread(const RuntimeCall& call);
std::uint64_t memset2DAsync(const RuntimeCall& call);
std::uint64_t memset2DAsyncPerThread(const RuntimeCall& call);
std::uint64_t memset3DAsync(const RuntimeCall& call);
std::uint64_t memset3DAsyncPerThread(const RuntimeCall& call);

}  // namespace simulator::ptx
