#include "native/worker/driver/environment.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "native/worker/driver/cache.h"

extern char** environ;

namespace worker {

namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";
constexpr const char* kNone = "-1";

void clearCudaVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "CUDA_", 5) == 0)
      names.emplace_back(*variable, std::strcspn(*variable, "="));
  }
  for (const auto& name : names) unsetenv(name.c_str());
}

/// Variables of the client that are set for the driver: those that change how its own work is done.
/// Excluded are variables that name a file or a library (core dumps, logs, caches, injection),
/// because the worker sees the host's files. Also excluded: variables that stop the process, and
/// those of the node (MPS, clocks, cache sizes).
constexpr std::string_view kForTheDriver[] = {
    "CUDA_BINARY_LOADER_THREAD_COUNT",
    "CUDA_CACHE_DISABLE",
    "CUDA_DEVICE_DEFAULT_PERSISTING_L2_CACHE_PERCENTAGE_LIMIT",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_MAX_COPY_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_DISABLE_JIT",
    "CUDA_DISABLE_PTX_JIT",
    "CUDA_FORCE_JIT",
    "CUDA_FORCE_PRELOAD_LIBRARIES",
    "CUDA_FORCE_PTX_JIT",
    "CUDA_GRAPHS_USE_NODE_PRIORITY",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MANAGED_FORCE_DEVICE_ALLOC",
    "CUDA_MODULE_DATA_LOADING",
    "CUDA_MODULE_LOADING",
    "CUDA_SCALE_LAUNCH_QUEUES",
    "NVIDIA_VIRTUAL_SIMULATOR_CHECK",
    kVisible,
};

bool isForTheDriver(std::string_view name) {
  return std::ranges::find(kForTheDriver, name) != std::end(kForTheDriver);
}

/// MPS limits are in MiB. A worker under MPS sees only device 0.
void addMps(Environment& environment, const Mps& mps) {
  if (mps.pipes.empty()) return;
  environment["CUDA_MPS_PIPE_DIRECTORY"] = mps.pipes;
  environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(mps.threads);
  constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
  if (mps.memory > 0)
    environment["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] =
        "0=" + std::to_string((mps.memory - 1) / kMebibyte + 1) + "M";
}

/// Removes CUDA_MODULE_LOADING=LAZY, which is the default and which PyTorch sets in every process.
Environment relevant(Environment environment) {
  const auto loading = environment.find("CUDA_MODULE_LOADING");
  if (loading != environment.end() && loading->second == "LAZY") environment.erase(loading);
  return environment;
}

std::string_view next(std::string_view& list) {
  const std::size_t comma = list.find(',');
  const std::string_view entry = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return entry;
}

/// The allocation's GPU that an entry names; empty if there is none.
std::string named(const std::vector<std::string>& gpus, std::string_view entry) {
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool byUuid = entry.starts_with("GPU-") && std::string_view(gpus[i]).starts_with(entry);
    if (byUuid || entry == std::to_string(i)) return gpus[i];
  }
  return {};
}

}  // namespace

std::string visibleDevices(const std::vector<std::string>& gpus, const char* wanted) {
  std::string visible;
  const auto add = [&](const std::string& gpu) { visible += (visible.empty() ? "" : ",") + gpu; };
  if (wanted == nullptr) {
    for (const auto& gpu : gpus) add(gpu);
    return visible;
  }
  if (gpus.empty()) return wanted;
  for (std::string_view rest = wanted; !rest.empty();) {
    const std::string gpu = named(gpus, next(rest));
    if (gpu.empty()) break;
    add(gpu);
  }
  return visible.empty() ? kNone : visible;
}

Environment driverEnvironment(std::span<const std::byte> variables,
                              const std::vector<std::string>& gpus, bool ownCache, const Mps& mps) {
  Environment environment;
  const auto* text = reinterpret_cast<const char*>(variables.data());
  std::string_view rest(
      text, variables.empty() || text[variables.size() - 1] != '\0' ? 0 : variables.size());
  while (!rest.empty()) {
    const std::string variable(rest.data());
    rest.remove_prefix(variable.size() + 1);
    const std::size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = variable.substr(0, equals);
    if (isForTheDriver(name)) environment[name] = variable.substr(equals + 1);
  }
  const auto wanted = environment.find(kVisible);
  if (wanted != environment.end() || !gpus.empty())
    environment[kVisible] =
        visibleDevices(gpus, wanted != environment.end() ? wanted->second.c_str() : nullptr);
  if (ownCache) {
    environment["CUDA_CACHE_PATH"] = kCachePath;
    environment["CUDA_CACHE_MAXSIZE"] = kCacheBytes;
  }
  addMps(environment, mps);
  return environment;
}

Environment placed(Environment environment, const Places& places) {
  const auto visible = environment.find(kVisible);
  if (visible == environment.end() || visible->second == kNone) return environment;
  if (!places.present.empty()) visible->second = places.present;
  for (const std::string& other : places.others) visible->second += "," + other;
  return environment;
}

bool hidesAll(const std::vector<std::string>& gpus) {
  const char* visible = std::getenv(kVisible);
  return visible != nullptr && (gpus.empty() || std::strcmp(visible, kNone) == 0);
}

void adopt(const Environment& environment) {
  clearCudaVariables();
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
}

bool equivalent(const Environment& one, const Environment& other) {
  return relevant(one) == relevant(other);
}

}  // namespace worker
