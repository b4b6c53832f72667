#include "native/worker/gpus/nvml.h"

#include <algorithm>
#include <cstddef>

namespace worker::nvml {

/// Retries with more space, because processes may start between two queries.
std::vector<ProcessInfo> list(Processes ask, Device device) {
  constexpr unsigned kMost = 65536;
  std::vector<ProcessInfo> found(256);
  while (ask != nullptr && found.size() <= kMost) {
    auto count = static_cast<unsigned>(found.size());
    const Return status = ask(device, &count, found.data());
    if (status == kSuccess) return found.resize(std::min<std::size_t>(count, found.size())), found;
    if (status != kInsufficientSize) break;
    found.resize(std::max<std::size_t>(found.size() * 2, count));
  }
  return {};
}

}  // namespace worker::nvml
