// Functions that programs call and the device runtime of CUDA provides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "native/simulator/ptx/machine/warp.h"

namespace simulator::ptx {

/// The values from DeviceRuntime on are the functions of device_runtime.h, in their order.
enum class Builtin : std::uint32_t {
  None,
  Vprintf,
  AssertFail,
  Malloc,
  Free,
  Memcpy,
  Memset,
  SetConditional,
  DeviceRuntime
};

/// Words of 64 bits that the arguments of one call take, each argument a whole number of them.
inline constexpr std::size_t kBuiltinArguments = 9;

Builtin builtinNamed(std::string_view name);

/// Runs it for one lane; anything but CUDA_SUCCESS ends the launch.
CUresult runBuiltin(Builtin builtin, Warp& warp, unsigned lane, const std::uint64_t* arguments,
                    std::uint64_t& result);

/// A string of the device, at most 64 KiB of it; false when it is not readable.
bool readString(Warp& warp, unsigned lane, std::uint64_t address, std::string& text);

/// Formats the output of vprintf and counts its arguments; false if a pointer is bad. printf.cpp
bool formatText(Warp& warp, unsigned lane, std::uint64_t format, std::uint64_t arguments,
                std::string& text, int& taken);

}  // namespace simulator::ptx
