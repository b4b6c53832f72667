// The processes of the allocation, with their pids in the container, and samples of their use.
#include <time.h>

#include <algorithm>

#include "nvml/library.h"

using namespace nvml;

namespace {

Wide microsecondsNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<Wide>(now.tv_sec) * 1'000'000 + static_cast<Wide>(now.tv_nsec) / 1000;
}

/// Fills an array of the caller: `count` is its length, then that of the list.
template <class Entry, class Source, class Convert>
Return fill(const std::vector<Source>& list, unsigned* count, Entry* entries, Convert&& convert) {
  if (count == nullptr) return kInvalidArgument;
  const unsigned room = *count;
  *count = static_cast<unsigned>(list.size());
  if (list.empty()) return kSuccess;
  if (room < list.size()) return kInsufficientSize;
  if (entries == nullptr) return kInvalidArgument;
  std::ranges::transform(list, entries, convert);
  return kSuccess;
}

template <class Entry>
Return list(Device device, unsigned* count, Entry* entries) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    return fill(gpu.processes, count, entries, [](const Process& process) {
      Entry entry{};
      entry.pid = process.pid;
      entry.usedGpuMemory = process.memory;
      if constexpr (requires { entry.gpuInstanceId; })
        entry.gpuInstanceId = entry.computeInstanceId = kNoInstance;
      return entry;
    });
  });
}

/// Graphics and MPS.
Return listNone(Device device, unsigned* count) {
  return onDevice(device, [&](const Gpu&, unsigned) {
    if (count == nullptr) return kInvalidArgument;
    *count = 0;
    return kSuccess;
  });
}

}  // namespace

NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                                        ProcessInfoV1* infos) {
  return list(device, count, infos);
}

NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                           ProcessInfo* infos) {
  return list(device, count, infos);
}

NVML_EXPORT Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                           ProcessInfo* infos) {
  return list(device, count, infos);
}

#define NO_PROCESSES(call) \
  NVML_EXPORT Return call(Device device, unsigned* count, void*) { return listNone(device, count); }
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2)
NO_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3)

NVML_EXPORT Return nvmlDeviceGetRunningProcessDetailList(Device device, ProcessDetailList* result) {
  if (const Return version = checkVersion(result); version != kSuccess) return version;
  if (result->mode != 0) return listNone(device, &result->count);
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    return fill(gpu.processes, &result->count, result->processes, [](const Process& process) {
      return ProcessDetail{process.pid, process.memory, kNoInstance, kNoInstance, 0};
    });
  });
}

/// One sample for each process. NVIDIA's library says "not found" where no sample is newer.
NVML_EXPORT Return nvmlDeviceGetProcessUtilization(Device device, ProcessSample* samples,
                                                   unsigned* count, Wide lastSeen) {
  const Wide now = microsecondsNow();
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (gpu.processes.empty() || lastSeen >= now) {
      if (count != nullptr) *count = 0;
      return count == nullptr ? kInvalidArgument : kNotFound;
    }
    if (samples == nullptr && count != nullptr) *count = 0;
    return fill(gpu.processes, count, samples, [now](const Process& process) {
      return ProcessSample{process.pid, now, process.busy, 0, 0, 0};
    });
  });
}

NVML_EXPORT Return nvmlDeviceGetProcessesUtilizationInfo(Device device, ProcessUses* result) {
  if (const Return version = checkVersion(result); version != kSuccess) return version;
  const Wide now = microsecondsNow();
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (result->uses == nullptr) result->count = 0;
    return fill(gpu.processes, &result->count, result->uses, [now](const Process& process) {
      return ProcessUse{now, process.pid, process.busy, 0, 0, 0, 0, 0};
    });
  });
}

/// The latest sample of an engine's use: the GPU, and those that a slice does not use.
NVML_EXPORT Return nvmlDeviceGetSamples(Device device, unsigned type, Wide lastSeen,
                                        unsigned* valueType, unsigned* count, Sample* samples) {
  constexpr unsigned kGpuUse = 1;
  constexpr unsigned kUnsigned = 1;  // NVML_VALUE_TYPE_UNSIGNED_INT
  const bool isUse = (type >= kGpuUse && type <= 4) || type == 8 || type == 9;
  const Wide now = microsecondsNow();
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (valueType == nullptr || count == nullptr) return kInvalidArgument;
    if (!isUse) return kNotSupported;
    *valueType = kUnsigned;
    const unsigned room = *count;
    *count = 1;
    if (samples == nullptr) return kSuccess;
    if (lastSeen >= now) return kNotFound;
    if (room == 0) return kInsufficientSize;
    samples[0] = {now, type == kGpuUse ? gpu.busy : 0, 0};
    return kSuccess;
  });
}
