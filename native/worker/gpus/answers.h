// What NVML answers about a GPU, for libnvidia-ml.so.1 in containers (nvml/): gpu-proxy passes it
// on as it is.
#pragma once

#include "native/worker/gpus/nvml.h"
#include "native/worker/reports/report.h"

namespace worker {

/// Texts "STATUS HEX" by call, as the page has them (nvml/page.h). A call that the driver lacks or
/// does not support is left out.
class NvmlAnswers {
 public:
  explicit NvmlAnswers(void* library) : library_(library) {}

  /// Versions of the driver, of NVML and of CUDA; CUDA's is at most the one that programs get.
  JsonObject system() const;
  /// Answers about a GPU that stay the same.
  JsonObject constants(nvml::Device device) const;
  /// Answers about a GPU that change.
  JsonObject readings(nvml::Device device) const;
  /// Whether two GPUs reach each other's memory: CALL/UUID/CAPABILITY.
  void addPeer(JsonObject& answers, nvml::Device device, nvml::Device peer,
               const std::string& uuid) const;

 private:
  void addFields(JsonObject& answers, nvml::Device device) const;

  void* library_;
};

}  // namespace worker
