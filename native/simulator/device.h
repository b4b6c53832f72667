// The simulated GPUs that this process sees, in the order of CUDA_VISIBLE_DEVICES.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/shared_state.h"

namespace simulator {

struct Context;
struct Pool;

class Device {
 public:
  /// `shared`: accounts of all processes of the node; null: this process uses the device alone.
  Device(int index, std::size_t memory, SharedState* shared);

  /// index among all simulated GPUs, before CUDA_VISIBLE_DEVICES; occupy() changes it
  int index;
  /// index of the GPU whose attributes and PCI address it has, also after occupy(), as on an H200
  const int described;
  const std::size_t totalBytes;  ///< NVIDIA_VIRTUAL_SIMULATED_MEMORY
  CUdevice ordinal = 0;          ///< the number of the device in this process
  CUuuid uuid{};
  Context* primary = nullptr;  ///< never null after construction; active while it is retained
  std::shared_ptr<Pool> defaultPool;

  std::string pciBusId() const;  ///< 0000:17:00.0

  /// Charges `bytes` of the device's memory. False if they do not fit.
  bool charge(std::size_t bytes);
  void release(std::size_t bytes);
  std::size_t usedBytes() const;
  /// Bytes that a context holds before any allocation.
  std::size_t contextBytes() const;
  /// Adds (1) or removes (-1) a context.
  void addContext(int change);

  /// Gives up the memory and the contexts that this process has on the GPU.
  void vacate();
  /// Takes them again, on the GPU with this index, which it is from then on. False if the memory
  /// does not fit.
  bool occupy(int index);

  /// During its lifetime, a kernel of this process runs on the device.
  class Busy {
   public:
    explicit Busy(Device& device);
    ~Busy();
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

   private:
    Device& device_;
  };

 private:
  SharedState* const shared_;
  std::atomic<std::size_t> used_{0};
  GpuUse vacated_;
};

using Devices = std::vector<std::unique_ptr<Device>>;

/// The visible devices; created by cuInit, constant afterwards.
const Devices& devices();
void setDevices(Devices devices);
/// Null if the ordinal is invalid.
Device* findDevice(CUdevice ordinal);
/// Null if no device has the PCI bus ID. The domain or the function may be omitted.
Device* findDeviceByPciBusId(std::string_view busId);

/// The indices of the devices that CUDA_VISIBLE_DEVICES selects, up to the first invalid entry.
/// Exposed for tests.
std::vector<int> visibleIndices(const char* list, const std::vector<std::string>& uuids);

}  // namespace simulator
