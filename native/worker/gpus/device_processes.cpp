#include "native/worker/gpus/device_processes.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "native/worker/driver/simulated_state.h"
#include "native/worker/gpus/answers.h"
#include "native/worker/gpus/nvml.h"
#include "native/worker/gpus/xid_events.h"
#include "native/worker/reports/log.h"
#include "native/worker/reports/report.h"

namespace worker {

namespace {

using namespace nvml;

using Utilization = Return (*)(Device, ProcessSample*, unsigned* count, Wide lastSeen);

struct Functions {
  Return (*init)() = nullptr;
  Return (*count)(unsigned*) = nullptr;
  Return (*handle)(unsigned index, Device*) = nullptr;
  Return (*uuid)(Device, char*, unsigned bytes) = nullptr;
  Processes compute = nullptr;
  Processes mps = nullptr;  ///< lists clients of an MPS server; null if the driver lacks it
  Utilization utilization = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
};

bool load(const std::string& path, void*& library, Functions& functions) {
  library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return log("%s cannot be loaded: %s", path.c_str(), dlerror()), false;
  find(library, "nvmlInit_v2", functions.init);
  find(library, "nvmlDeviceGetCount_v2", functions.count);
  find(library, "nvmlDeviceGetHandleByIndex_v2", functions.handle);
  find(library, "nvmlDeviceGetUUID", functions.uuid);
  find(library, "nvmlDeviceGetComputeRunningProcesses_v3", functions.compute);
  find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", functions.mps);
  find(library, "nvmlDeviceGetProcessUtilization", functions.utilization);
  find(library, "nvmlDeviceGetMemoryInfo", functions.memory);
  if (functions.init && functions.count && functions.handle && functions.uuid && functions.compute)
    return true;
  return log("%s is not NVML of driver 510 or newer: functions are missing", path.c_str()), false;
}

struct Gpu {
  Device device;
  std::string uuid;
  unsigned long long seen = 0;  ///< timestamp of the latest sample
  JsonObject constants;         ///< answers that stay the same
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
  std::vector<ProcessSample> samples(256);
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
  std::ranges::sort(samples, {}, &ProcessSample::timeStamp);
  const unsigned long long before = gpu.seen;
  std::map<unsigned, unsigned long long> latest;
  for (const ProcessSample& sample : samples) {
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

std::vector<Device> devicesOf(const std::vector<Gpu>& gpus) {
  std::vector<Device> devices;
  for (const Gpu& gpu : gpus) devices.push_back(gpu.device);
  return devices;
}

Wide memoryOf(const Functions& functions, Device device) {
  Memory memory{};
  return functions.memory && functions.memory(device, &memory) == kSuccess ? memory.total : 0;
}

void askOnce(const NvmlAnswers& answers, std::vector<Gpu>& gpus) {
  for (Gpu& gpu : gpus) {
    gpu.constants = answers.constants(gpu.device);
    for (const Gpu& peer : gpus) answers.addPeer(gpu.constants, gpu.device, peer.device, peer.uuid);
  }
}

JsonObject describe(const Functions& functions, Gpu& gpu, const NvmlAnswers* answers,
                    XidEvents* xids) {
  JsonObject object;
  object.add("uuid", std::string_view(gpu.uuid)).add("processes", processesOf(functions, gpu));
  if (xids != nullptr) object.add("xids", xids->take(gpu.device));
  if (answers == nullptr) return object;
  return object.add("memory", memoryOf(functions, gpu.device))
      .add("constants", gpu.constants)
      .add("readings", answers->readings(gpu.device));
}

bool print(const Functions& functions, std::vector<Gpu>& gpus, const NvmlAnswers* answers,
           XidEvents* xids) {
  std::vector<JsonObject> objects;
  for (Gpu& gpu : gpus) objects.push_back(describe(functions, gpu, answers, xids));
  JsonObject all;
  all.add("gpus", objects);
  if (answers != nullptr) all.add("system", answers->system());
  const std::string line = all.text() + '\n';
  return write(STDOUT_FILENO, line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

}  // namespace

int printDeviceProcesses(const Options& options) {
  Functions functions;
  void* library = nullptr;
  if (const std::string sentence = shareSimulatedState(options.simulatedState); !sentence.empty())
    return log("%s", sentence.c_str()), 1;
  if (!load(options.processes, library, functions)) return 1;
  unsigned count = 0;
  if (const Return status = functions.init(); status != kSuccess)
    return log("NVML does not start: error %d", status), 1;
  if (const Return status = functions.count(&count); status != kSuccess)
    return log("NVML does not list the GPUs: error %d", status), 1;
  std::vector<Gpu> gpus = gpusOf(functions, count);
  const NvmlAnswers answers(library);
  const NvmlAnswers* asked = options.answers ? &answers : nullptr;
  if (asked != nullptr) askOnce(answers, gpus);
  std::optional<XidEvents> events;
  if (options.xids) events.emplace(library, devicesOf(gpus));
  XidEvents* xids = events ? &*events : nullptr;
  const std::chrono::milliseconds interval(options.watch);
  bool read = print(functions, gpus, asked, xids);
  if (options.watch == 0) return read ? 0 : 1;
  for (; read; read = print(functions, gpus, asked, xids))
    xids == nullptr ? std::this_thread::sleep_for(interval) : xids->wait(interval);
  return 0;
}

}  // namespace worker
