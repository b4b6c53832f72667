// What every slice of a GPU answers alike: no MIG, no video engines, no licences, no accounting, no
// fabric, no confidential computing.
#include "nvml/library.h"

using namespace nvml;

namespace {

template <class Value>
Return constant(Device device, Value value, Value* out) {
  return onDevice(device, [&](const Gpu&, unsigned) -> Return {
    if (out == nullptr) return kInvalidArgument;
    *out = value;
    return kSuccess;
  });
}

template <class Value>
Return constants(Device device, Value value, std::initializer_list<Value*> outs) {
  for (Value* out : outs) {
    if (const Return status = constant(device, value, out); status != kSuccess) return status;
  }
  return kSuccess;
}

}  // namespace

/// 0 % over a period of 100 ms, as an idle GPU says.
#define IDLE_ENGINE(call)                                                       \
  NVML_EXPORT Return call(Device device, unsigned* percent, unsigned* period) { \
    const Return status = constant(device, 0u, percent);                        \
    return status == kSuccess ? constant(device, 100'000u, period) : status;    \
  }
IDLE_ENGINE(nvmlDeviceGetEncoderUtilization)
IDLE_ENGINE(nvmlDeviceGetDecoderUtilization)
IDLE_ENGINE(nvmlDeviceGetJpgUtilization)
IDLE_ENGINE(nvmlDeviceGetOfaUtilization)

NVML_EXPORT Return nvmlDeviceGetEncoderSessions(Device device, unsigned* count, void*) {
  return constant(device, 0u, count);
}

NVML_EXPORT Return nvmlDeviceGetFBCSessions(Device device, unsigned* count, void*) {
  return constant(device, 0u, count);
}

NVML_EXPORT Return nvmlDeviceGetEncoderStats(Device device, unsigned* count, unsigned* rate,
                                             unsigned* latency) {
  return constants(device, 0u, {count, rate, latency});
}

NVML_EXPORT Return nvmlDeviceGetFBCStats(Device device, unsigned stats[3]) {
  if (stats == nullptr) return kInvalidArgument;
  return constants(device, 0u, {stats, stats + 1, stats + 2});
}

/// The first words of the struct: not licensable, no features.
#define NO_LICENCE(call)                                      \
  NVML_EXPORT Return call(Device device, unsigned words[2]) { \
    if (words == nullptr) return kInvalidArgument;            \
    return constants(device, 0u, {words, words + 1});         \
  }
NO_LICENCE(nvmlDeviceGetGridLicensableFeatures)
NO_LICENCE(nvmlDeviceGetGridLicensableFeatures_v2)
NO_LICENCE(nvmlDeviceGetGridLicensableFeatures_v3)
NO_LICENCE(nvmlDeviceGetGridLicensableFeatures_v4)

NVML_EXPORT Return nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  return constants(device, 0u, {current, pending});
}

NVML_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned* count) {
  return constant(device, 0u, count);
}

NVML_EXPORT Return nvmlDeviceIsMigDeviceHandle(Device device, unsigned* isMig) {
  return constant(device, 0u, isMig);
}

NVML_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned, Device*) {
  return onDevice(device, [](const Gpu&, unsigned) { return kNotFound; });
}

NVML_EXPORT Return nvmlDeviceGetAccountingMode(Device device, unsigned* mode) {
  return constant(device, 0u, mode);
}

NVML_EXPORT Return nvmlDeviceGetAccountingBufferSize(Device device, unsigned* size) {
  return constant(device, 0u, size);
}

NVML_EXPORT Return nvmlDeviceGetAccountingPids(Device device, unsigned* count, unsigned*) {
  return constant(device, 0u, count);
}

NVML_EXPORT Return nvmlDeviceGetConfComputeMemSizeInfo(Device device, Wide kib[2]) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (kib == nullptr) return kInvalidArgument;
    kib[0] = 0;
    kib[1] = gpu.total >> 10;
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetConfComputeProtectedMemoryUsage(Device device, Memory* memory) {
  return constant(device, Memory{}, memory);
}

NVML_EXPORT Return nvmlDeviceGetGpuFabricInfo(Device device, FabricInfo* info) {
  return constant(device, FabricInfo{}, info);
}

/// The version tells which struct the caller has.
NVML_EXPORT Return nvmlDeviceGetGpuFabricInfoV(Device device, unsigned* version) {
  if (version == nullptr) return kInvalidArgument;
  if (*version == versionOf<FabricInfoV2>())
    return constant(device, FabricInfoV2{*version, {}, 0},
                    reinterpret_cast<FabricInfoV2*>(version));
  if (*version == versionOf<FabricInfoV3>())
    return constant(device, FabricInfoV3{*version, {}, 0, 0},
                    reinterpret_cast<FabricInfoV3*>(version));
  return kArgumentVersionMismatch;
}

NVML_EXPORT Return nvmlGpmQueryDeviceSupport(Device device, GpmSupport* support) {
  return support == nullptr ? kInvalidArgument : constant(device, 0u, &support->isSupported);
}

NVML_EXPORT Return nvmlDeviceGetTemperatureV(Device device, TemperatureV1* temperature) {
  if (const Return version = checkVersion(temperature); version != kSuccess) return version;
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    return writeAnswer(gpu.answers,
                       "nvmlDeviceGetTemperature/" + std::to_string(temperature->sensor),
                       {{&temperature->temperature, sizeof temperature->temperature}});
  });
}
