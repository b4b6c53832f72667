// What the simulated NVML tells about a device: constants recorded from the H200 (driver
// 580.159.04, idle), with the name, the memory and the PCI address of the simulated GPU.
#include <cstdio>
#include <cstring>
#include <string>

#include "native/simulator/nvml.h"

using namespace nvml;

namespace {

template <class Value>
Return write(void* device, Value* out, Value value) {
  return simulator::onNvmlDevice(device, [&](int) {
    if (out == nullptr) return kInvalidArgument;
    *out = value;
    return kSuccess;
  });
}

Return writeText(void* device, char* out, unsigned length, const std::string& text) {
  return simulator::onNvmlDevice(device, [&](int) {
    if (out == nullptr) return kInvalidArgument;
    if (length <= text.size()) return kInsufficientSize;
    std::memcpy(out, text.c_str(), text.size() + 1);
    return kSuccess;
  });
}

/// Values by key.
template <std::size_t Count>
Return writeKeyed(void* device, unsigned key, unsigned* out, const unsigned (&values)[Count]) {
  return key < Count ? write(device, out, values[key]) : kNotSupported;
}

}  // namespace

#define NUMBER(call, number) \
  NVML_CALL call(void* device, unsigned* out) { return write(device, out, unsigned{number}); }
#define WIDE(call, number) \
  NVML_CALL call(void* device, Wide* out) { return write(device, out, Wide{number}); }
#define TEXT(call, text)                                     \
  NVML_CALL call(void* device, char* out, unsigned length) { \
    return writeText(device, out, length, text);             \
  }
#define KEYED(call, ...)                                      \
  NVML_CALL call(void* device, unsigned key, unsigned* out) { \
    constexpr unsigned kValues[] = {__VA_ARGS__};             \
    return writeKeyed(device, key, out, kValues);             \
  }
#define PAIR(call, Type, one, other)                                         \
  NVML_CALL call(void* device, Type* first, Type* second) {                  \
    const Return status = write(device, first, Type{one});                   \
    return status == kSuccess ? write(device, second, Type{other}) : status; \
  }

TEXT(nvmlDeviceGetName, "Simulated GPU")
TEXT(nvmlDeviceGetVbiosVersion, "00.00.00.00.00")
NUMBER(nvmlDeviceGetArchitecture, 9)  // Hopper
NUMBER(nvmlDeviceGetBrand, 14)        // NVIDIA
NUMBER(nvmlDeviceGetBusType, 2)       // PCIe
NUMBER(nvmlDeviceGetBoardId, 6)
NUMBER(nvmlDeviceGetComputeMode, 0)
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, 5)
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, 16)
NUMBER(nvmlDeviceGetDefaultEccMode, 1)
NUMBER(nvmlDeviceGetDisplayActive, 0)
NUMBER(nvmlDeviceGetDisplayMode, 0)
NUMBER(nvmlDeviceGetEnforcedPowerLimit, 700'000)
NUMBER(nvmlDeviceGetMemoryBusWidth, 6144)
NUMBER(nvmlDeviceGetMultiGpuBoard, 0)
NUMBER(nvmlDeviceGetNumFans, 0)
NUMBER(nvmlDeviceGetNumGpuCores, 16896)
NUMBER(nvmlDeviceGetPcieReplayCounter, 0)
NUMBER(nvmlDeviceGetPerformanceState, 0)
NUMBER(nvmlDeviceGetPowerState, 0)
NUMBER(nvmlDeviceGetPersistenceMode, 1)
NUMBER(nvmlDeviceGetPowerManagementMode, 1)
NUMBER(nvmlDeviceGetPowerManagementLimit, 700'000)
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, 700'000)
NUMBER(nvmlDeviceGetPowerSource, 0)
NUMBER(nvmlDeviceGetPowerUsage, 106'810)
NUMBER(nvmlDeviceGetVirtualizationMode, 0)
WIDE(nvmlDeviceGetCurrentClocksEventReasons, 1)  // idle
WIDE(nvmlDeviceGetCurrentClocksThrottleReasons, 1)
WIDE(nvmlDeviceGetSupportedClocksEventReasons, 0x1ff)
WIDE(nvmlDeviceGetSupportedClocksThrottleReasons, 0x1ff)
WIDE(nvmlDeviceGetTotalEnergyConsumption, 1'000'000)
PAIR(nvmlDeviceGetEccMode, unsigned, 1, 1)
PAIR(nvmlDeviceGetGspFirmwareMode, unsigned, 0, 0)
PAIR(nvmlDeviceGetPowerManagementLimitConstraints, unsigned, 200'000, 700'000)
// By type of clock: graphics, SM, memory, video.
KEYED(nvmlDeviceGetClockInfo, 345, 345, 3201, 765)
KEYED(nvmlDeviceGetMaxClockInfo, 1980, 1980, 3201, 1545)
KEYED(nvmlDeviceGetApplicationsClock, 1980, 1980, 3201)
KEYED(nvmlDeviceGetDefaultApplicationsClock, 1980, 1980, 3201)
KEYED(nvmlDeviceGetMaxCustomerBoostClock, 1980, 1980, 3201)
KEYED(nvmlDeviceGetTemperature, 39)
// Shutdown, slowdown, highest of the memory, highest of the GPU.
KEYED(nvmlDeviceGetTemperatureThreshold, 95, 89, 95, 87)

NVML_CALL nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  const auto capability = static_cast<int>(simulator::computeCapability());
  const Return status = write(device, major, capability / 10);
  return status == kSuccess ? write(device, minor, capability % 10) : status;
}

NVML_CALL nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  return simulator::onNvmlDevice(device, [&](int index) {
    if (memory == nullptr) return kInvalidArgument;
    const Wide bytes = simulator::deviceMemory(index);
    *memory = {bytes, bytes, 0};
    return kSuccess;
  });
}

NVML_CALL nvmlDeviceGetBAR1MemoryInfo(void* device, Bar1Memory* memory) {
  constexpr Wide kBytes = 256ULL << 30;
  return write(device, memory, {kBytes, kBytes, 0});
}

/// No error of any kind.
NVML_CALL nvmlDeviceGetTotalEccErrors(void* device, unsigned, unsigned, Wide* count) {
  return write(device, count, Wide{0});
}

NVML_CALL nvmlDeviceGetMemoryErrorCounter(void* device, unsigned, unsigned, unsigned location,
                                          Wide* count) {
  constexpr unsigned kDram = 2;
  constexpr unsigned kSram = 7;
  if (location != kDram && location != kSram) return kNotSupported;
  return write(device, count, Wide{0});
}

NVML_CALL nvmlDeviceGetRemappedRows(void* device, unsigned* correctable, unsigned* uncorrectable,
                                    unsigned* pending, unsigned* failed) {
  for (unsigned* out : {correctable, uncorrectable, pending, failed}) {
    if (const Return status = write(device, out, 0u); status != kSuccess) return status;
  }
  return kSuccess;
}

/// All simulated GPUs reach each other's memory (peer.cpp), but have no NVLink.
NVML_CALL nvmlDeviceGetP2PStatus(void* one, void* other, unsigned capability, unsigned* status) {
  constexpr unsigned kNvLink = 2, kCapabilities = 5;
  constexpr unsigned kOk = 0, kStatusNotSupported = 5;
  if (capability >= kCapabilities) return kInvalidArgument;
  const Return known = simulator::onNvmlDevice(one, [](int) { return kSuccess; });
  return known != kSuccess
             ? known
             : write(other, status, capability == kNvLink ? kStatusNotSupported : kOk);
}

/// As the driver tells it through cuDeviceGetPCIBusId.
NVML_CALL nvmlDeviceGetPciInfo_v3(void* device, PciInfo* info) {
  return simulator::onNvmlDevice(device, [&](int index) {
    if (info == nullptr) return kInvalidArgument;
    *info = {};
    info->bus = static_cast<unsigned>(simulator::kFirstBus + index);
    info->pciDeviceId = 0x233510de;
    info->pciSubSystemId = 0x18bf10de;
    std::snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "0000:%02X:00.0", info->bus);
    std::snprintf(info->busId, sizeof info->busId, "00000000:%02X:00.0", info->bus);
    return kSuccess;
  });
}

NVML_CALL nvmlDeviceGetPciInfoExt(void* device, PciInfoExt* info) {
  PciInfo known{};
  const Return status = nvmlDeviceGetPciInfo_v3(device, &known);
  if (status != kSuccess || info == nullptr) return status != kSuccess ? status : kInvalidArgument;
  if (info->version != versionOf<PciInfoExt>()) return kArgumentVersionMismatch;
  *info = {versionOf<PciInfoExt>(), 0, known.bus, 0, known.pciDeviceId,
           known.pciSubSystemId,    3, 2,         {}};
  std::memcpy(info->busId, known.busId, sizeof info->busId);
  return kSuccess;
}

NVML_CALL nvmlDeviceGetFieldValues(void* device, int count, FieldValue* values) {
  constexpr unsigned kMemoryTemperature = 82;
  constexpr unsigned kAveragePower = 185;
  constexpr unsigned kInstantPower = 186;
  return simulator::onNvmlDevice(device, [&](int) {
    for (int i = 0; i < count; ++i) {
      FieldValue& field = values[i];
      field.valueType = 1;  // unsigned int
      if (field.scopeId != 0) {
        field.status = kNotSupported;
        continue;
      }
      field.status = kSuccess;
      field.value = 0;
      if (field.fieldId == kMemoryTemperature)
        field.value = 41;
      else if (field.fieldId == kAveragePower || field.fieldId == kInstantPower)
        field.value = 106'810;
      else
        field.status = kNotSupported;
    }
    return kSuccess;
  });
}
