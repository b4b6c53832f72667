#include "native/worker/device_processes.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "native/worker/log.h"
#include "native/worker/report.h"

namespace worker {

namespace {

using Device = void*;
using Return = int;
constexpr Return kSuccess = 0;
constexpr Return kInsufficientSize = 7;
constexpr unsigned long long kNotAvailable = ~0ULL;

struct ProcessInfo {  // nvmlProcessInfo_v2_t
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
using Processes = Return (*)(Device, unsigned* count, ProcessInfo*);

struct Nvml {
  Return (*init)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned index, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned bytes) = nullptr;
  Processes compute = nullptr;
  Processes mps = nullptr;  ///< clients of an MPS server; not every driver tells
};

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

bool load(const std::string& path, Nvml& nvml) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return log("%s cannot be loaded: %s", path.c_str(), dlerror()), false;
  find(library, "nvmlInit_v2", nvml.init);
  find(library, "nvmlDeviceGetCount_v2", nvml.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.handle);
  find(library, "nvmlDeviceGetUUID", nvml.uuid);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", nvml.compute);
  find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", nvml.mps);
  if (nvml.init && nvml.count && nvml.handle && nvml.uuid && nvml.compute) return true;
  return log("%s is not NVML of driver 510 or newer: functions are missing", path.c_str()), false;
}

/// Processes come and go between the question for their number and the one for them.
std::vector<ProcessInfo> list(Processes ask, Device device) {
  constexpr unsigned kMost = 65536;
  std::vector<ProcessInfo> found(64);
  while (ask != nullptr && found.size() <= kMost) {
    auto count = static_cast<unsigned>(found.size());
    const Return status = ask(device, &count, found.data());
    if (status == kSuccess) return found.resize(std::min<std::size_t>(count, found.size())), found;
    if (status != kInsufficientSize) break;
    found.resize(std::max<std::size_t>(found.size() * 2, count));
  }
  return {};
}

/// A client of MPS may stand in both lists.
std::vector<JsonObject> processesOf(const Nvml& nvml, Device device) {
  std::map<unsigned, unsigned long long> bytes;
  for (const Processes ask : {nvml.compute, nvml.mps}) {
    for (const ProcessInfo& process : list(ask, device)) {
      if (process.usedGpuMemory != kNotAvailable) bytes[process.pid] = std::max(bytes[process.pid], process.usedGpuMemory);
    }
  }
  std::vector<JsonObject> objects;
  for (const auto& [pid, memory] : bytes) objects.push_back(JsonObject().add("pid", pid).add("memory", memory));
  return objects;
}

}  // namespace

int printDeviceProcesses(const std::string& library) {
  Nvml nvml;
  if (!load(library, nvml)) return 1;
  unsigned count = 0;
  if (const Return status = nvml.init(); status != kSuccess) return log("NVML does not start: error %d", status), 1;
  if (const Return status = nvml.count(&count); status != kSuccess) return log("NVML does not list the GPUs: error %d", status), 1;
  std::vector<JsonObject> gpus;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    char uuid[96] = {};
    if (nvml.handle(i, &device) != kSuccess || nvml.uuid(device, uuid, sizeof uuid) != kSuccess) continue;
    gpus.push_back(JsonObject().add("uuid", std::string_view(uuid)).add("processes", processesOf(nvml, device)));
  }
  const std::string line = JsonObject().add("gpus", gpus).text() + '\n';
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size()) ? 0 : 1;
}

}  // namespace worker
