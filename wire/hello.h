// Messages that client and worker exchange when a session opens.
#pragma once

#include <cstdint>

#include "wire/address_window.h"

namespace wire {

/// Attributes are numbered from 1; CU_DEVICE_ATTRIBUTE_MAX of CUDA 13.0 is 149.
inline constexpr std::size_t kDeviceAttributes = 160;
inline constexpr std::size_t kMaxDevices = 64;

/// Client to worker. The environment follows, as a sequence of NUL-terminated NAME=value.
struct Hello {
  std::uint32_t version;  ///< kHelloVersion; the rest depends on it
  std::uint32_t traces;   ///< 1: the client asks for the times of its work on the GPU
  std::uint64_t buildId;
  AddressRange window;             ///< window of shared host memory in the client
  std::uint8_t deviceRangesTaken;  ///< 1: the client could not keep deviceRanges() free, so the
                                   ///< worker must not use the legacy layout
  std::uint8_t padding[7];
};

/// Worker to client. DeviceInfo[devices] follows, or the message of a refusal.
struct Welcome {
  std::uint32_t version;
  std::int32_t status;  ///< result of cuInit
  std::uint64_t buildId;
  std::int32_t driverVersion;  ///< the minimum of 13000 and the host driver's
  std::uint16_t devices;
  std::uint16_t summarises;  ///< 1: the client prints a summary at its end
};

struct DeviceInfo {
  char name[256];
  char pciBusId[32];
  std::uint8_t uuid[16];
  std::uint64_t totalMemory;  ///< bytes; at most the quota
  std::int32_t attributes[kDeviceAttributes];
  std::uint8_t attributeKnown[kDeviceAttributes];
};

}  // namespace wire
