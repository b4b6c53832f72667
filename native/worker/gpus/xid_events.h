// Xids: the errors that the driver reports about a GPU, by number. NVML tells them to processes
// that wait for them.
#pragma once

#include <chrono>
#include <map>
#include <vector>

#include "native/worker/gpus/nvml.h"
#include "native/worker/reports/report.h"

namespace worker {

class XidEvents {
 public:
  /// Registers for the Xids of these devices. Devices whose Xids NVML does not tell are logged.
  XidEvents(void* library, const std::vector<nvml::Device>& devices);

  /// Waits, and collects the Xids of that time.
  void wait(std::chrono::milliseconds time);

  /// Returns and forgets what was collected about a device: {"xid","count"} for each number.
  std::vector<JsonObject> take(nvml::Device device);

 private:
  using Wait = nvml::Return (*)(void* set, nvml::EventData*, unsigned milliseconds);

  Wait wait_ = nullptr;  ///< null: NVML tells no Xids
  void* set_ = nullptr;
  /// Occurrences by device and Xid.
  std::map<nvml::Device, std::map<nvml::Wide, std::uint64_t>> collected_;
};

}  // namespace worker
