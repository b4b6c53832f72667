// cuInit and the version.
#include <cstdlib>
#include <mutex>
#include <utility>

#include "native/simulator/attributes.h"
#include "native/simulator/checkpoint.h"
#include "native/simulator/context.h"
#include "native/simulator/device.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/log.h"
#include "native/simulator/machine.h"
#include "native/simulator/pool.h"
#include "native/simulator/shared_state.h"

namespace simulator {
namespace {

std::mutex initialising;

/// The devices that the process sees, each with its primary context and its pool.
CUresult makeDevices() {
  bool named = false;
  SharedState* shared = SharedState::open(named);
  if (named && (shared == nullptr || !shared->join())) {
    logError(
        "the file that NVIDIA_VIRTUAL_SIMULATED_STATE names cannot be used: it must be readable "
        "and writable, and of this version");
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  Devices all;
  std::vector<std::string> uuids;
  for (int i = 0; i < deviceCount(); ++i) {
    all.push_back(std::make_unique<Device>(i, deviceMemory(i), shared));
    uuids.push_back(uuidText(all.back()->uuid));
  }
  Devices visible;
  for (const int index : visibleIndices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids)) {
    if (hasFailed(index)) continue;
    all[index]->ordinal = static_cast<CUdevice>(visible.size());
    visible.push_back(std::move(all[index]));
  }
  setDevices(std::move(visible));
  for (const auto& device : devices()) {
    device->primary = makePrimaryContext(*device);
    device->defaultPool = makePool(*device);
  }
  return devices().empty() ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

}  // namespace
}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuInit(unsigned int Flags) {
  return guarded([&]() -> CUresult {
    if (Flags != 0) return CUDA_ERROR_INVALID_VALUE;
    const std::lock_guard lock(initialising);
    if (driverState() == DriverState::forked) return CUDA_ERROR_NOT_INITIALIZED;
    if (driverState() == DriverState::ready) return CUDA_SUCCESS;
    if (!prepareCheckpoints()) return CUDA_ERROR_OPERATING_SYSTEM;
    if (const CUresult status = makeDevices(); status != CUDA_SUCCESS) return status;
    markDriverReady();
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDriverGetVersion(int* driverVersion) {
  if (driverVersion == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *driverVersion = driverVersionFromEnvironment();
  return CUDA_SUCCESS;
}
