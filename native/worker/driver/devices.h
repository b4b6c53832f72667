// Description for the client of the devices that it may use.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "driver.h"
#include "wire/hello.h"

namespace worker {

/// All visible devices, with attributes masked. Empty, with the error, when the driver refuses.
std::vector<wire::DeviceInfo> describeDevices(const Driver& driver, CUresult& status);

/// Leaves one device: the one with this UUID, or the first one if there is none.
void showOnly(std::vector<wire::DeviceInfo>& devices, std::string_view uuid);

/// Cuts the memory of each to `limit`, in bytes; 0 leaves it.
void limitMemory(std::vector<wire::DeviceInfo>& devices, std::uint64_t limit);

/// In the format of nvidia-smi: GPU-xxxxxxxx-xxxx-….
std::string uuidText(const std::uint8_t (&uuid)[16]);
std::string uuidText(const CUuuid& uuid);

}  // namespace worker
