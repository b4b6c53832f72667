// Events of the simulated NVML: the Xids that a test writes into the file of
// NVIDIA_VIRTUAL_SIMULATED_XIDS, one per line, `INDEX XID`. An event set gets the lines that are
// appended after its creation.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "native/simulator/nvml.h"

using namespace nvml;

namespace {

struct EventSet {
  std::string file;
  std::streamoff read = 0;  ///< bytes of the file that were read
};

/// Reads the next complete line.
bool next(EventSet& set, unsigned& index, Wide& xid) {
  std::ifstream file(set.file);
  std::string line;
  if (!file.seekg(set.read) || !std::getline(file, line) || file.eof()) return false;
  set.read += static_cast<std::streamoff>(line.size()) + 1;
  return std::sscanf(line.c_str(), "%u %llu", &index, &xid) == 2;
}

std::streamoff sizeOf(const std::string& path) {
  std::ifstream file(path, std::ios::ate);
  return file ? static_cast<std::streamoff>(file.tellg()) : 0;
}

}  // namespace

NVML_CALL nvmlEventSetCreate(void** set) {
  if (set == nullptr) return kInvalidArgument;
  const char* path = std::getenv("NVIDIA_VIRTUAL_SIMULATED_XIDS");
  const std::string file = path == nullptr ? "" : path;
  *set = new EventSet{file, sizeOf(file)};
  return kSuccess;
}

NVML_CALL nvmlEventSetFree(void* set) {
  delete static_cast<EventSet*>(set);
  return kSuccess;
}

NVML_CALL nvmlDeviceRegisterEvents(void* device, Wide types, void* set) {
  return simulator::onNvmlDevice(device, [&](int) {
    if (set == nullptr) return kInvalidArgument;
    return types == kXidEvent ? kSuccess : kNotSupported;
  });
}

NVML_CALL nvmlEventSetWait_v2(void* set, EventData* event, unsigned milliseconds) {
  using namespace std::chrono;
  constexpr auto kInterval = 10ms;
  if (set == nullptr || event == nullptr) return kInvalidArgument;
  const auto end = steady_clock::now() + std::chrono::milliseconds(milliseconds);
  for (unsigned index = 0; steady_clock::now() < end;) {
    *event = {nullptr, kXidEvent, 0, kNoInstance, kNoInstance};
    if (!next(*static_cast<EventSet*>(set), index, event->data))
      std::this_thread::sleep_for(kInterval);
    else if (nvmlDeviceGetHandleByIndex_v2(index, &event->device) == kSuccess)
      return kSuccess;
  }
  return kTimeout;
}
