// The simulated NVML, libsimulator-nvml.so.1: the functions that gpu-proxy uses. Here those with
// data from the shared state of the simulated GPUs.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_abi.h"
#include "native/simulator/machine.h"
#include "native/simulator/nvml.h"
#include "native/simulator/shared_state.h"

namespace {

using namespace nvml;

struct Gpu {
  int index;
  struct Seen {
    std::uint64_t busyNanoseconds;
    std::uint64_t microseconds;  ///< time of the last sample
  };
  std::map<pid_t, Seen> seen;  ///< by nvmlDeviceGetProcessUtilization
};

struct Library {
  simulator::SharedState* state = nullptr;  ///< null: no processes are known
  std::vector<Gpu> gpus;
};

std::mutex mutex;
Library* library = nullptr;

/// Whether the simulated driver, if the process has loaded it, is in a checkpoint.
bool isTaken() {
  void* const driver = dlopen("libsimulator-cuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return false;
  using GetState = CUresult (*)(int, CUprocessState*);
  const auto get = reinterpret_cast<GetState>(dlsym(driver, "cuCheckpointProcessGetState"));
  CUprocessState state = CU_PROCESS_STATE_RUNNING;
  const bool known = get != nullptr && get(getpid(), &state) == CUDA_SUCCESS;
  dlclose(driver);
  return known && state == CU_PROCESS_STATE_CHECKPOINTED;
}

std::uint64_t microseconds() {
  using namespace std::chrono;
  return static_cast<std::uint64_t>(
      duration_cast<std::chrono::microseconds>(system_clock::now().time_since_epoch()).count());
}

std::vector<simulator::ProcessUse> processesOf(const Gpu& gpu) {
  return library->state == nullptr ? std::vector<simulator::ProcessUse>()
                                   : library->state->processes(gpu.index);
}

/// Of the driver on the H200 from which the attributes are.
constexpr const char* kDriverVersion = "580.159.04";

Return copyText(char* out, unsigned length, const std::string& text) {
  if (out == nullptr) return kInvalidArgument;
  if (length <= text.size()) return kInsufficientSize;
  std::copy_n(text.c_str(), text.size() + 1, out);
  return kSuccess;
}

/// Runs body(Gpu&) on a device of this library.
template <class Body>
Return onDevice(void* device, Body&& body) {
  const std::lock_guard lock(mutex);
  if (library == nullptr) return kUninitialized;
  const auto gpu = std::ranges::find_if(library->gpus,
                                        [&](const Gpu& candidate) { return &candidate == device; });
  return gpu == library->gpus.end() ? kInvalidArgument : body(*gpu);
}

}  // namespace

Return simulator::onNvmlDevice(void* device, const std::function<Return(int index)>& body) {
  return onDevice(device, [&](const Gpu& gpu) { return body(gpu.index); });
}

NVML_CALL nvmlInit_v2() {
  const std::lock_guard lock(mutex);
  if (library != nullptr) return kSuccess;
  library = new Library;
  bool named = false;
  library->state = simulator::SharedState::open(named);
  for (int i = 0; i < simulator::deviceCount(); ++i) {
    if (!simulator::hasFailed(i)) library->gpus.push_back({i, {}});
  }
  return kSuccess;
}

/// Never returns while the process is in a checkpoint of its driver, as with the driver 580 (H200,
/// 2026-11-28).
NVML_CALL nvmlShutdown() {
  while (isTaken()) pause();
  return library == nullptr ? kUninitialized : kSuccess;
}

NVML_CALL nvmlDeviceGetCount_v2(unsigned* count) {
  const std::lock_guard lock(mutex);
  if (library == nullptr) return kUninitialized;
  if (count == nullptr) return kInvalidArgument;
  *count = static_cast<unsigned>(library->gpus.size());
  return kSuccess;
}

NVML_CALL nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  const std::lock_guard lock(mutex);
  if (library == nullptr) return kUninitialized;
  if (device == nullptr || index >= library->gpus.size()) return kInvalidArgument;
  *device = &library->gpus[index];
  return kSuccess;
}

NVML_CALL nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  return onDevice(device, [&](const Gpu& gpu) {
    return copyText(uuid, length, simulator::uuidText(simulator::uuidOf(gpu.index)));
  });
}

NVML_CALL nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count,
                                                  ProcessInfo* infos) {
  return onDevice(device, [&](const Gpu& gpu) -> Return {
    if (count == nullptr || (*count > 0 && infos == nullptr)) return kInvalidArgument;
    const auto found = processesOf(gpu);
    const bool fits = found.size() <= *count;
    *count = static_cast<unsigned>(found.size());
    if (!fits) return kInsufficientSize;
    std::ranges::transform(found, infos, [](const simulator::ProcessUse& use) {
      return ProcessInfo{static_cast<unsigned>(use.pid), use.bytes, ~0u, ~0u};
    });
    return kSuccess;
  });
}

/// Returns a sample per process for the time since the last call. A process that is new, or was
/// idle, has no sample.
NVML_CALL nvmlDeviceGetProcessUtilization(void* device, ProcessSample* samples, unsigned* count,
                                          unsigned long long) {
  return onDevice(device, [&](Gpu& gpu) -> Return {
    if (count == nullptr) return kInvalidArgument;
    const auto found = processesOf(gpu);
    const bool fits = samples != nullptr && found.size() <= *count;
    const unsigned room = static_cast<unsigned>(found.size());
    *count = room;
    if (!fits) return kInsufficientSize;
    const std::uint64_t time = microseconds();
    std::map<pid_t, Gpu::Seen> seen;
    *count = 0;
    for (const simulator::ProcessUse& use : found) {
      seen[use.pid] = {use.busyNanoseconds, time};
      const auto former = gpu.seen.find(use.pid);
      if (former == gpu.seen.end() || use.busyNanoseconds <= former->second.busyNanoseconds ||
          time <= former->second.microseconds)
        continue;
      const std::uint64_t busy = (use.busyNanoseconds - former->second.busyNanoseconds) / 1000;
      const std::uint64_t percent =
          std::min<std::uint64_t>(100, busy * 100 / (time - former->second.microseconds));
      samples[(*count)++] = {
          static_cast<unsigned>(use.pid), time, static_cast<unsigned>(percent), 0, 0, 0};
    }
    gpu.seen = std::move(seen);
    return *count > 0 ? kSuccess : kNotFound;
  });
}

NVML_CALL nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return copyText(version, length, kDriverVersion);
}

NVML_CALL nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return copyText(version, length, "13." + std::string(kDriverVersion));
}

NVML_CALL nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (version == nullptr) return kInvalidArgument;
  *version = simulator::driverVersionFromEnvironment();
  return kSuccess;
}
