// The simulated GPUs that this process sees, in the order of CUDA_VISIBLE_DEVICES.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda_abi.h"

namespace simulator {

struct Context;
struct Pool;

class Device {
 public:
  Device(int index, std::size_t memory);

  const int index;               ///< among all simulated GPUs of the machine, before CUDA_VISIBLE_DEVICES
  const std::size_t totalBytes;  ///< NVIDIA_VIRTUAL_SIMULATED_MEMORY
  CUdevice ordinal = 0;          ///< the number by which this process knows it
  CUuuid uuid{};
  Context* primary = nullptr;  ///< never null after construction; active only while it is retained
  std::shared_ptr<Pool> defaultPool;

  std::string uuidText() const;  ///< GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx
  std::string pciBusId() const;  ///< 0000:17:00.0

  /// Takes `bytes` of the device's memory; false when they are not there.
  bool charge(std::size_t bytes);
  void release(std::size_t bytes) { used_.fetch_sub(bytes); }
  std::size_t usedBytes() const { return used_.load(); }

 private:
  std::atomic<std::size_t> used_{0};
};

/// The visible devices; made by cuInit and never changed afterwards.
const std::vector<std::unique_ptr<Device>>& devices();
void makeDevices();
/// Null when the ordinal names no device.
Device* findDevice(CUdevice ordinal);

/// The indices that CUDA_VISIBLE_DEVICES chooses among `all` devices (exposed for tests): up to the first entry that names none.
std::vector<int> visibleIndices(const char* list, const std::vector<std::string>& uuids);

}  // namespace simulator
