// What client and worker tell each other once, when a session opens.
#pragma once

#include <cstdint>

#include "wire/address_window.h"

namespace wire {

/// Attributes are numbered from 1; CU_DEVICE_ATTRIBUTE_MAX of CUDA 13.0 is 149.
inline constexpr std::size_t kDeviceAttributes = 160;
inline constexpr std::size_t kMaxDevices = 64;

/// Client to worker. The `environment` that follows is a sequence of NUL-terminated NAME=value.
struct Hello {
  std::uint32_t version;  ///< kHelloVersion; everything after it may change with it
  std::uint32_t reserved;
  std::uint64_t buildId;
  AddressRange window;             ///< where shared host memory lies in the client
  std::uint8_t deviceRangesTaken;  ///< 1: the client could not keep deviceRanges() free, so the worker must not use the legacy layout
  std::uint8_t padding[7];
};

/// Worker to client. DeviceInfo[devices] follows, or the sentence of the refusal.
struct Welcome {
  std::uint32_t version;
  std::int32_t status;  ///< CUresult that cuInit answers
  std::uint64_t buildId;
  std::int32_t driverVersion;  ///< the lower of 13000 and the host driver's
  std::uint32_t devices;
};

struct DeviceInfo {
  char name[256];
  char pciBusId[32];
  std::uint8_t uuid[16];
  std::uint64_t totalMemory;  ///< bytes; the quota when it is lower
  std::int32_t attributes[kDeviceAttributes];
  std::uint8_t attributeKnown[kDeviceAttributes];
};

}  // namespace wire
