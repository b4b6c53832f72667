#include "native/worker/accounts/held_memory.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "native/worker/driver/kernel_calls.h"
#include "native/worker/gpus/nvml.h"
#include "wire/wait.h"

namespace worker {

namespace {

constexpr std::size_t kMostUses = 65536;

/// NVML, opened once per process like the driver.
struct Opened {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, nvml::Device*) = nullptr;
  nvml::Processes compute = nullptr;
  nvml::Processes mps = nullptr;  ///< lists clients of an MPS server; null if the driver lacks it
  std::vector<nvml::Device> devices;
} opened;

/// Bytes that this process holds on the device; 0 if unknown. Other processes may start and end
/// between two queries.
std::uint64_t held(nvml::Processes ask, nvml::Device device) {
  const std::vector<nvml::ProcessInfo> found = nvml::list(ask, device);
  const auto own =
      std::ranges::find(found, static_cast<unsigned>(getpid()), &nvml::ProcessInfo::pid);
  return own == found.end() || own->usedGpuMemory == nvml::kNotAvailable ? 0 : own->usedGpuMemory;
}

std::uint64_t held() {
  std::uint64_t bytes = 0;
  for (const nvml::Device device : opened.devices)
    bytes += std::max(held(opened.compute, device), held(opened.mps, device));
  return bytes;
}

int startNvml() {
  unsigned devices = 0;
  if (const int status = opened.init(); status != nvml::kSuccess) return status;
  if (const int status = opened.count(&devices); status != nvml::kSuccess) return status;
  for (unsigned i = 0; i < devices; ++i) {
    nvml::Device device = nullptr;
    if (opened.handle(i, &device) == nvml::kSuccess) opened.devices.push_back(device);
  }
  return nvml::kSuccess;
}

}  // namespace

std::string openHeldMemory(const std::string& path) {
  if (opened.compute != nullptr) return {};
  nvml::Processes compute = nullptr;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr || !nvml::find(library, "nvmlInit_v2", opened.init) ||
      !nvml::find(library, "nvmlShutdown", opened.shutdown) ||
      !nvml::find(library, "nvmlDeviceGetCount_v2", opened.count) ||
      !nvml::find(library, "nvmlDeviceGetHandleByIndex_v2", opened.handle) ||
      !nvml::find(library, "nvmlDeviceGetComputeRunningProcesses_v3", compute))
    return path + " cannot be loaded, or functions are missing in it";
  nvml::find(library, "nvmlDeviceGetMPSComputeRunningProcesses_v3", opened.mps);
  if (const int status = startNvml(); status != nvml::kSuccess)
    return path + " does not start: error " + std::to_string(status);
  opened.compute = compute;
  if (held() == 0) return {};
  opened.compute = nullptr;
  return path + " lists another process under the id of this one";
}

void closeHeldMemory() {
  if (opened.compute == nullptr) return;
  opened.devices.clear();
  opened.shutdown();
}

void reopenHeldMemory() {
  if (opened.compute != nullptr) startNvml();
}

std::uint64_t HeldMemory::provided() const {
  std::uint64_t bytes = 0;
  for (const auto& [context, own] : contexts_) bytes += own;
  return bytes;
}

/// The new context has just been created, so memory that is held but not charged belongs to it.
void HeldMemory::contextMade(CUcontext context) {
  if (opened.compute == nullptr) return;
  const std::lock_guard lock(mutex_);
  const std::uint64_t known = quota_.own() + provided();
  const std::uint64_t now = held();
  contexts_.try_emplace(context, now > known ? now - known : 0);
}

void HeldMemory::contextEnded(CUcontext context) {
  const std::lock_guard lock(mutex_);
  contexts_.erase(context);
  std::erase_if(used_, [&](const auto& use) { return use.second == context; });
}

bool HeldMemory::firstUse(std::uint64_t image) {
  CUcontext context = nullptr;
  if (opened.compute == nullptr || driver_.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
      context == nullptr)
    return false;
  const std::lock_guard lock(mutex_);
  if (used_.size() == kMostUses) used_.clear();  // only handles of unloaded images can be so many
  return used_.emplace(image, context).second;
}

/// The question itself calls the kernel, so the counter is read behind it.
std::uint64_t HeldMemory::freeOf(CUdevice device) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = wire::monotonicNanoseconds();
  if (kernelCallsCounted && latest_.device == device && latest_.calls == kernelCalls &&
      now - latest_.when < kFreshNanoseconds)
    return latest_.free;
  size_t total = 0;
  size_t free = 0;
  if (driver_.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) return 0;
  latest_ = {.device = device, .free = free, .calls = kernelCalls, .when = now};
  return free;
}

HeldMemory::Reading HeldMemory::read() {
  CUdevice device = -1;
  if (driver_.cuCtxGetDevice(&device) != CUDA_SUCCESS) return {.charged = quota_.own()};
  const std::uint64_t free = freeOf(device);
  return {.free = free, .charged = quota_.own(), .calls = kernelCalls};
}

bool HeldMemory::grew(const Reading& before) {
  if (kernelCallsCounted && kernelCalls == before.calls) return false;
  const Reading after = read();
  return before.free > after.free &&
         before.free - after.free > std::max(after.charged, before.charged) - before.charged;
}

bool HeldMemory::settle() {
  if (opened.compute == nullptr) return true;
  const std::lock_guard lock(mutex_);
  const std::uint64_t now = held();
  if (now == 0) return true;
  const std::uint64_t known = quota_.own() + provided() + kMargin;
  if (now <= known) {
    const std::uint64_t gone = std::min(charged_, known - now);
    quota_.refund(gone);
    charged_ -= gone;
    return true;
  }
  if (!quota_.charge(now - known)) return false;
  charged_ += now - known;
  return true;
}

void HeldMemory::imageEnded() {
  {
    const std::lock_guard lock(mutex_);
    if (charged_ == 0) return;
  }
  settle();
}

}  // namespace worker
