#include "native/worker/gpus/device_processes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>
#include <vector>

#include "native/worker/driver/simulated_state.h"
#include "native/worker/gpus/nvml.h"
#include "native/worker/reports/log.h"
#include "native/worker/reports/report.h"

namespace worker {

namespace {

using namespace nvml;

struct UtilizationSample {  // nvmlProcessUtilizationSample_t
  unsigned pid;
  unsigned long long timeStamp;  ///< microseconds
  unsigned smUtil;               ///< percent
  unsigned memUtil;
  unsigned encUtil;
  unsigned decUtil;
};
using Utilization = Return (*)(Device, UtilizationSample*, unsigned* count,
                               unsigned long long lastSeen);

struct Functions {
  Return (*init)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned index, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned bytes) = nullptr;
  Processes compute = nullptr;
  Processes mps = nullptr;  ///< lists clients of an MPS server; null if the driver lacks it
  Utilization utilization = nullptr;
};

bool load(const std::string& path, Functions& functions) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return log("%s cannot be loaded: %s", path.c_str(), dlerror()), false;
  find(library, "nvmlInit_v2", functions.init);
  find(library, "nvmlDeviceGetCount_v2", functions.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", functions.handle);
  find(library, "nvmlDeviceGetUUID", functions.uuid);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", functions.compute);
  find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", functions.mps);
  find(library, "nvmlDeviceGetProcessUtilization", functions.utilization);
  if (functions.init && functions.count && functions.handle && functions.uuid && functions.compute)
    return true;
  return log("%s is not NVML of driver 510 or newer: functions are missing", path.c_str()), false;
}

struct Gpu {
  Device device;
  std::string uuid;
  unsigned long long seen = 0;  ///< timestamp of the latest sample
};

/// The clock of NVML's samples.
unsigned long long microsecondsNow() {
  using namespace std::chrono;
  return static_cast<unsigned long long>(
      duration_cast<microseconds>(system_clock::now().time_since_epoch()).count());
}

/// Busy time by pid. A sample covers the time since the one before it, one second at most: NVML
/// takes one to six samples per second of a busy GPU.
std::map<unsigned, unsigned long long> busyMicroseconds(const Functions& functions, Gpu& gpu) {
  constexpr unsigned long long kLongest = 1'000'000;
  std::map<unsigned, unsigned long long> busy;
  std::vector<UtilizationSample> samples(256);
  auto count = static_cast<unsigned>(samples.size());
  if (functions.utilization == nullptr) return busy;
  Return status = functions.utilization(gpu.device, samples.data(), &count, gpu.seen);
  if (status == kInsufficientSize) {
    samples.resize(count);
    status = functions.utilization(gpu.device, samples.data(), &count, gpu.seen);
  }
  if (status != kSuccess) {
    if (gpu.seen == 0) gpu.seen = microsecondsNow();
    return busy;
  }
  samples.resize(std::min<std::size_t>(count, samples.size()));
  std::ranges::sort(samples, {}, &UtilizationSample::timeStamp);
  const unsigned long long before = gpu.seen;
  std::map<unsigned, unsigned long long> latest;
  for (const UtilizationSample& sample : samples) {
    if (sample.timeStamp <= before) continue;
    const unsigned long long since = std::max(before, latest[sample.pid]);
    if (before != 0)
      busy[sample.pid] +=
          std::min(sample.timeStamp - since, kLongest) * std::min(sample.smUtil, 100u) / 100;
    latest[sample.pid] = sample.timeStamp;
    gpu.seen = std::max(gpu.seen, sample.timeStamp);
  }
  return busy;
}

/// Takes the maximum, because an MPS client may be in both lists.
std::vector<JsonObject> processesOf(const Functions& functions, Gpu& gpu) {
  std::map<unsigned, unsigned long long> bytes;
  for (const Processes ask : {functions.compute, functions.mps}) {
    for (const ProcessInfo& process : list(ask, gpu.device)) {
      if (process.usedGpuMemory != kNotAvailable)
        bytes[process.pid] = std::max(bytes[process.pid], process.usedGpuMemory);
    }
  }
  std::map<unsigned, unsigned long long> busy = busyMicroseconds(functions, gpu);
  std::vector<JsonObject> objects;
  for (const auto& [pid, memory] : bytes)
    objects.push_back(JsonObject().add("pid", pid).add("memory", memory).add("busy", busy[pid]));
  return objects;
}

std::vector<Gpu> gpusOf(const Functions& functions, unsigned count) {
  std::vector<Gpu> gpus;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    char uuid[96] = {};
    if (functions.handle(i, &device) == kSuccess &&
        functions.uuid(device, uuid, sizeof uuid) == kSuccess)
      gpus.push_back({device, uuid});
  }
  return gpus;
}

bool print(const Functions& functions, std::vector<Gpu>& gpus) {
  std::vector<JsonObject> objects;
  for (Gpu& gpu : gpus)
    objects.push_back(JsonObject()
                          .add("uuid", std::string_view(gpu.uuid))
                          .add("processes", processesOf(functions, gpu)));
  const std::string line = JsonObject().add("gpus", objects).text() + '\n';
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

int printDeviceProcesses(const Options& options) {
  Functions functions;
  if (const std::string sentence = shareSimulatedState(options.simulatedState); !sentence.empty())
    return log("%s", sentence.c_str()), 1;
  if (!load(options.processes, functions)) return 1;
  unsigned count = 0;
  if (const Return status = functions.init(); status != kSuccess)
    return log("NVML does not start: error %d", status), 1;
  if (const Return status = functions.count(&count); status != kSuccess)
    return log("NVML does not list the GPUs: error %d", status), 1;
  std::vector<Gpu> gpus = gpusOf(functions, count);
  bool read = print(functions, gpus);
  if (options.watch == 0) return read ? 0 : 1;
  for (; read; read = print(functions, gpus))
    std::this_thread::sleep_for(std::chrono::milliseconds(options.watch));
  return 0;
}

}  // namespace worker
