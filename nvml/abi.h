// NVML's binary interface as far as the project uses it: status codes, structs, and the shapes of
// functions. Declared here, so that no toolkit is needed to build; abi_check.cpp compares it with
// the real nvml.h.
#pragma once

#include <cstddef>

namespace nvml {

using Device = void*;
using Wide = unsigned long long;

enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

inline constexpr Wide kNotAvailable = ~0ULL;
/// Instance id of a process on a GPU without MIG.
inline constexpr unsigned kNoInstance = ~0u;

/// The word that versioned structs begin with.
template <class Struct>
constexpr unsigned versionOf() {
  return static_cast<unsigned>(sizeof(Struct)) | Struct::kVersion << 24;
}

/// A buffer of fixed size for a text.
template <std::size_t Bytes>
struct Buffer {
  char text[Bytes];
};

struct PciInfo {  // nvmlPciInfo_t
  char busIdLegacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  char busId[32];
};

struct PciInfoExt {  // nvmlPciInfoExt_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pciDeviceId;
  unsigned pciSubSystemId;
  unsigned baseClass;
  unsigned subClass;
  char busId[32];
};

struct Memory {  // nvmlMemory_t
  Wide total;
  Wide free;
  Wide used;
};

struct MemoryV2 {  // nvmlMemory_v2_t
  static constexpr unsigned kVersion = 2;
  unsigned version;
  Wide total;
  Wide reserved;
  Wide free;
  Wide used;
};

struct Bar1Memory {  // nvmlBAR1Memory_t
  Wide total;
  Wide free;
  Wide used;
};

struct Utilization {  // nvmlUtilization_t, percent
  unsigned gpu;
  unsigned memory;
};

struct ProcessInfoV1 {  // nvmlProcessInfo_v1_t
  unsigned pid;
  Wide usedGpuMemory;  ///< bytes, or kNotAvailable
};

struct ProcessInfo {  // nvmlProcessInfo_v2_t, which is nvmlProcessInfo_t
  unsigned pid;
  Wide usedGpuMemory;  ///< bytes, or kNotAvailable
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};

struct ProcessDetail {  // nvmlProcessDetail_v1_t
  unsigned pid;
  Wide usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
  Wide usedGpuCcProtectedMemory;
};

struct ProcessDetailList {  // nvmlProcessDetailList_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned mode;  ///< 0: compute, 1: graphics, 2: MPS
  unsigned count;
  ProcessDetail* processes;
};

struct ProcessSample {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  Wide timeStamp;   ///< microseconds since 1970
  unsigned smUtil;  ///< percent
  unsigned memUtil;
  unsigned encUtil;
  unsigned decUtil;
};

struct ProcessUse {  // nvmlProcessUtilizationInfo_v1_t
  Wide timeStamp;
  unsigned pid;
  unsigned smUtil;
  unsigned memUtil;
  unsigned encUtil;
  unsigned decUtil;
  unsigned jpgUtil;
  unsigned ofaUtil;
};

struct ProcessUses {  // nvmlProcessesUtilizationInfo_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned count;
  Wide lastSeenTimeStamp;
  ProcessUse* uses;
};

struct Sample {  // nvmlSample_t with the member of its union that is used
  Wide timeStamp;
  unsigned value;
  unsigned unused;
};

struct EventData {  // nvmlEventData_t
  Device device;
  Wide type;  ///< one of the bits of kXidEvent and its like
  Wide data;  ///< the number of the Xid, for kXidEvent
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};

/// nvmlEventTypeXidCriticalError, the type of an event that reports an Xid.
inline constexpr Wide kXidEvent = 8;

struct FieldValue {  // nvmlFieldValue_t
  unsigned fieldId;
  unsigned scopeId;
  long long timestamp;  ///< microseconds since 1970
  long long latencyUsec;
  unsigned valueType;
  Return status;
  Wide value;
};

struct Capabilities {  // nvmlDeviceCapabilities_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned mask;
};

struct AddressingMode {  // nvmlDeviceAddressingMode_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned value;
};

struct Pdi {  // nvmlPdi_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  Wide value;
};

struct MarginTemperature {  // nvmlMarginTemperature_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  int value;
};

struct TemperatureV1 {  // nvmlTemperature_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned sensor;
  int temperature;
};

struct RepairStatus {  // nvmlRepairStatus_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned channelPending;
  unsigned tpcPending;
};

struct SramErrors {  // nvmlEccSramErrorStatus_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  Wide counts[11];
  unsigned thresholdExceeded;
};

struct RemappedRows {  // nvmlRemappedRowsInfo_v2_t, which is not in nvml.h 13.0
  unsigned counts[4];
  unsigned pending;
  unsigned failed;
};

struct RowRemapper {  // nvmlRowRemapperHistogramValues_t
  unsigned banks[5];
};

struct DriverBranch {  // nvmlSystemDriverBranchInfo_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  char branch[80];
};

struct FabricInfo {  // nvmlGpuFabricInfo_t
  unsigned char clusterUuid[16];
  Return status;
  unsigned cliqueId;
  unsigned char state;  ///< 0: not supported
};

struct FabricInfoV2 {  // nvmlGpuFabricInfo_v2_t
  static constexpr unsigned kVersion = 2;
  unsigned version;
  FabricInfo info;
  unsigned healthMask;
};

struct FabricInfoV3 {  // nvmlGpuFabricInfo_v3_t
  static constexpr unsigned kVersion = 3;
  unsigned version;
  FabricInfo info;
  unsigned healthMask;
  unsigned char healthSummary;
};

struct GpmSupport {  // nvmlGpmSupport_t
  unsigned version;
  unsigned isSupported;
};

struct ConfComputeState {  // nvmlConfComputeSystemState_t
  unsigned environment;
  unsigned feature;
  unsigned devTools;
};

struct ConfComputeSettings {  // nvmlSystemConfComputeSettings_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  ConfComputeState state;
  unsigned multiGpuMode;
};

struct UuidV1 {  // nvmlUUID_v1_t
  static constexpr unsigned kVersion = 1;
  unsigned version;
  unsigned type;  ///< 1: text, 2: 16 bytes
  union {
    char text[41];
    unsigned char bytes[16];
  };
};

static_assert(sizeof(PciInfo) == 68 && sizeof(MemoryV2) == 40 && sizeof(ProcessInfo) == 24);
static_assert(sizeof(FieldValue) == 40 && sizeof(SramErrors) == 104 && sizeof(ProcessUse) == 40);

}  // namespace nvml
