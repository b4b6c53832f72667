#include "native/worker/environment.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

extern char** environ;

namespace worker {

namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

void clearCudaVariables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::strncmp(*variable, "CUDA_", 5) == 0) names.emplace_back(*variable, std::strcspn(*variable, "="));
  }
  for (const auto& name : names) unsetenv(name.c_str());
}

/// The driver's log belongs to the program, which the interposer writes for.
bool isForTheDriver(std::string_view variable) { return variable.starts_with("CUDA_") && !variable.starts_with("CUDA_LOG_FILE="); }

std::string_view next(std::string_view& list) {
  const std::size_t comma = list.find(',');
  const std::string_view entry = list.substr(0, comma);
  list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  return entry;
}

/// The allocation's GPU that an entry names; empty when none.
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
  return visible.empty() ? "-1" : visible;
}

void adoptEnvironment(std::span<const std::byte> variables, const std::vector<std::string>& gpus) {
  clearCudaVariables();
  const auto* text = reinterpret_cast<const char*>(variables.data());
  std::string_view rest(text, variables.empty() || text[variables.size() - 1] != '\0' ? 0 : variables.size());
  while (!rest.empty()) {
    const std::string variable(rest.data());
    rest.remove_prefix(variable.size() + 1);
    const std::size_t equals = variable.find('=');
    if (equals != std::string::npos && isForTheDriver(variable))
      setenv(variable.substr(0, equals).c_str(), variable.c_str() + equals + 1, 1);
  }
  const char* wanted = std::getenv(kVisible);
  if (wanted != nullptr || !gpus.empty()) setenv(kVisible, visibleDevices(gpus, wanted).c_str(), 1);
}

}  // namespace worker
