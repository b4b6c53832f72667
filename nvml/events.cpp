// Event sets: they exist, and no event ever occurs. A failing nvmlEventSetCreate would end
// nvidia-smi.
#include <poll.h>

#include "nvml/library.h"

using namespace nvml;

namespace {

/// All event sets are the same empty one.
char emptySet;

Return waitForNothing(void* set, unsigned milliseconds) {
  if (const Return status = Library::instance().initialized(); status != kSuccess) return status;
  if (set != &emptySet) return kInvalidArgument;
  poll(nullptr, 0, static_cast<int>(milliseconds & 0x7fffffff));
  return kTimeout;
}

}  // namespace

NVML_EXPORT Return nvmlEventSetCreate(void** set) {
  if (const Return status = Library::instance().initialized(); status != kSuccess) return status;
  if (set == nullptr) return kInvalidArgument;
  *set = &emptySet;
  return kSuccess;
}

NVML_EXPORT Return nvmlEventSetFree(void* set) {
  if (const Return status = Library::instance().initialized(); status != kSuccess) return status;
  return set == &emptySet ? kSuccess : kInvalidArgument;
}

NVML_EXPORT Return nvmlEventSetWait(void* set, void*, unsigned milliseconds) {
  return waitForNothing(set, milliseconds);
}

NVML_EXPORT Return nvmlEventSetWait_v2(void* set, void*, unsigned milliseconds) {
  return waitForNothing(set, milliseconds);
}

NVML_EXPORT Return nvmlDeviceGetSupportedEventTypes(Device device, Wide* types) {
  return onDevice(device, [&](const Gpu&, unsigned) {
    if (types == nullptr) return kInvalidArgument;
    *types = 0;
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceRegisterEvents(Device device, Wide types, void* set) {
  return onDevice(device, [&](const Gpu&, unsigned) {
    if (set != &emptySet) return kInvalidArgument;
    return types == 0 ? kSuccess : kNotSupported;
  });
}
