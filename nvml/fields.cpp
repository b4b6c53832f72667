// nvmlDeviceGetFieldValues, and the status between two devices.
#include <time.h>

#include <cstring>

#include "nvml/library.h"

using namespace nvml;

namespace {

long long microsecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

/// The answer of a field is the type of the value and the value (native/worker/gpus/answers.cpp).
void fillField(const Gpu& gpu, FieldValue& field) {
  field.timestamp = microsecondsNow();
  field.latencyUsec = 0;
  const std::string name = "nvmlDeviceGetFieldValues/" + std::to_string(field.fieldId) + '/' +
                           std::to_string(field.scopeId);
  field.status =
      writeAnswer(gpu.answers, name,
                  {{&field.valueType, sizeof field.valueType}, {&field.value, sizeof field.value}});
}

}  // namespace

NVML_EXPORT Return nvmlDeviceGetFieldValues(Device device, int count, FieldValue* values) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (values == nullptr || count <= 0) return kInvalidArgument;
    for (int i = 0; i < count; ++i) fillField(gpu, values[i]);
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceOnSameBoard(Device one, Device other, int* same) {
  return onDevice(one, [&](const Gpu&, unsigned) {
    if (same == nullptr) return kInvalidArgument;
    *same = one == other;
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetP2PStatus(Device one, Device other, unsigned capability,
                                          unsigned* status) {
  std::string peer;
  const Return found = onDevice(other, [&](const Gpu& gpu, unsigned) {
    peer = gpu.uuid;
    return kSuccess;
  });
  if (found != kSuccess) return found;
  return onDevice(one, [&](const Gpu& gpu, unsigned) {
    const std::string name = "nvmlDeviceGetP2PStatus/" + peer + '/' + std::to_string(capability);
    return writeAnswer(gpu.answers, name, {{status, sizeof *status}});
  });
}
