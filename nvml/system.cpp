// Start, end, versions, and what a machine without units, licences and confidential computing
// answers.
#include "nvml/library.h"
#include "nvml/process_name.h"

using namespace nvml;

namespace {

Return systemText(const char* call, char* out, unsigned length) {
  return onPage([&](const Page& page) {
    const auto found = page.system.find(call);
    return writeText(found == page.system.end() ? "" : found->second.bytes, out, length);
  });
}

/// Writes a constant where the caller wants it.
template <class Value>
Return constant(Value value, Value* out) {
  return onPage([&](const Page&) -> Return {
    if (out == nullptr) return kInvalidArgument;
    *out = value;
    return kSuccess;
  });
}

}  // namespace

NVML_EXPORT Return nvmlInitWithFlags(unsigned) { return Library::instance().start(); }
NVML_EXPORT Return nvmlInit_v2() { return Library::instance().start(); }
NVML_EXPORT Return nvmlInit() { return Library::instance().start(); }
NVML_EXPORT Return nvmlShutdown() { return Library::instance().stop(); }

NVML_EXPORT const char* nvmlErrorString(int status) {
  switch (status) {
    case kSuccess: return "Success";
    case kUninitialized: return "Uninitialized";
    case kInvalidArgument: return "Invalid Argument";
    case kNotSupported: return "Not Supported";
    case kNoPermission: return "Insufficient Permissions";
    case kNotFound: return "Not Found";
    case kInsufficientSize: return "Insufficient Size";
    case kDriverNotLoaded: return "Driver Not Loaded";
    case kTimeout: return "Timeout";
    case kArgumentVersionMismatch: return "Argument version mismatch";
    default: return "Unknown Error";
  }
}

NVML_EXPORT Return nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return systemText("nvmlSystemGetDriverVersion", version, length);
}

NVML_EXPORT Return nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return systemText("nvmlSystemGetNVMLVersion", version, length);
}

NVML_EXPORT Return nvmlSystemGetDriverBranch(DriverBranch* branch, unsigned length) {
  const Return version = checkVersion(branch);
  return version == kSuccess ? systemText("nvmlSystemGetDriverBranch", branch->branch, length)
                             : version;
}

NVML_EXPORT Return nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return onPage([&](const Page& page) {
    const std::optional<int> found = cudaVersionOf(page);
    if (version == nullptr) return kInvalidArgument;
    *version = found.value_or(0);
    return found ? kSuccess : kUnknown;
  });
}

NVML_EXPORT Return nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_EXPORT Return nvmlSystemGetProcessName(unsigned pid, char* name, unsigned length) {
  return onPage([&](const Page&) {
    if (name == nullptr || length == 0) return kInvalidArgument;
    return readProcessName(pid, name, length);
  });
}

NVML_EXPORT Return nvmlUnitGetCount(unsigned* count) { return constant(0u, count); }
NVML_EXPORT Return nvmlGetExcludedDeviceCount(unsigned* count) { return constant(0u, count); }
NVML_EXPORT Return nvmlGetBlacklistDeviceCount(unsigned* count) { return constant(0u, count); }
NVML_EXPORT Return nvmlSystemGetHicVersion(unsigned* count, void*) { return constant(0u, count); }

NVML_EXPORT Return nvmlSystemGetConfComputeState(ConfComputeState* state) {
  return constant(ConfComputeState{}, state);
}

NVML_EXPORT Return nvmlSystemGetConfComputeCapabilities(Wide* capabilities) {
  return constant(Wide{0}, capabilities);
}

NVML_EXPORT Return nvmlSystemGetConfComputeGpusReadyState(unsigned* ready) {
  return constant(0u, ready);
}

NVML_EXPORT Return nvmlSystemGetConfComputeSettings(ConfComputeSettings* settings) {
  const Return version = checkVersion(settings);
  if (version != kSuccess) return version;
  return constant(ConfComputeSettings{versionOf<ConfComputeSettings>(), {}, 0}, settings);
}
