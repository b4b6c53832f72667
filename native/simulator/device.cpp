#include "native/simulator/device.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

#include "native/simulator/attributes.h"
#include "native/simulator/context.h"
#include "native/simulator/driver_call.h"
#include "native/simulator/pool.h"

namespace simulator {
namespace {

constexpr std::size_t kDefaultMemory = std::size_t{8} << 30;
constexpr int kMaxDevices = 64;

std::unique_ptr<std::vector<std::unique_ptr<Device>>>& deviceList() {
  static auto& list = *new std::unique_ptr<std::vector<std::unique_ptr<Device>>>;
  return list;
}

/// "8589934592", "512MiB", "8GiB"; `otherwise` when the variable is absent or says nothing sensible.
std::size_t bytesFromEnvironment(const char* name, std::size_t otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || !std::isdigit(static_cast<unsigned char>(*text))) return otherwise;
  char* unit = nullptr;
  const unsigned long long number = std::strtoull(text, &unit, 10);
  const std::string_view suffix(unit);
  const int shift = suffix == "KiB" ? 10 : suffix == "MiB" ? 20 : suffix == "GiB" ? 30 : suffix == "TiB" ? 40 : 0;
  if (number == 0 || (shift == 0 && !suffix.empty()) || number > (~0ull >> 16 >> shift)) return otherwise;
  return static_cast<std::size_t>(number) << shift;
}

/// Stable per index: the first bytes spell what it is, the last is the index.
CUuuid uuidOf(int index) {
  static constexpr unsigned char kStem[16] = {0x73, 0x69, 0x6d, 0x75, 0x6c, 0x61, 0x40, 0x64, 0xa9, 0x70, 0x75, 0, 0, 0, 0, 0};
  CUuuid uuid;
  std::memcpy(uuid.bytes, kStem, sizeof kStem);
  uuid.bytes[15] = static_cast<char>(index);
  return uuid;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The device that one entry of CUDA_VISIBLE_DEVICES names, -1 for none. A UUID may be cut short as long as it stays unique.
int indexOf(std::string_view entry, const std::vector<std::string>& uuids) {
  if (entry.starts_with("GPU-")) {
    int found = -1;
    for (std::size_t i = 0; i < uuids.size(); ++i) {
      if (!uuids[i].starts_with(lower(entry).replace(0, 4, "GPU-"))) continue;
      if (found >= 0) return -1;
      found = static_cast<int>(i);
    }
    return found;
  }
  if (entry.empty() || entry.size() > 4 || !std::all_of(entry.begin(), entry.end(), [](unsigned char c) { return std::isdigit(c); }))
    return -1;
  const int index = std::atoi(std::string(entry).c_str());
  return index < static_cast<int>(uuids.size()) ? index : -1;
}

/// Whether the file that NVIDIA_VIRTUAL_SIMULATED_FAILURES names has the index on a line: such a GPU has fallen off the bus.
bool hasFailed(int index) {
  const char* path = std::getenv("NVIDIA_VIRTUAL_SIMULATED_FAILURES");
  std::ifstream file(path != nullptr ? path : "");
  for (int failed = 0; file >> failed;) {
    if (failed == index) return true;
  }
  return false;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Device::Device(int index_, std::size_t memory) : index(index_), totalBytes(memory), uuid(uuidOf(index_)) {}

std::string Device::uuidText() const {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

std::string Device::pciBusId() const {
  int bus = 0;
  deviceAttribute(*this, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, bus);
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned>(bus) & 0xff);
  return text;
}

bool Device::charge(std::size_t bytes) {
  std::size_t used = used_.load();
  do {
    if (bytes > totalBytes - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

std::vector<int> visibleIndices(const char* list, const std::vector<std::string>& uuids) {
  std::vector<int> chosen;
  if (list == nullptr) {
    for (std::size_t i = 0; i < uuids.size(); ++i) chosen.push_back(static_cast<int>(i));
    return chosen;
  }
  std::string_view rest(list);
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const int index = indexOf(trimmed(rest.substr(0, comma)), uuids);
    if (index < 0) break;  // what follows an entry that names nothing is not seen either
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) return {};
    chosen.push_back(index);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return chosen;
}

void makeDevices() {
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATED_GPUS");
  const int count = std::clamp(text == nullptr || *text == 0 ? 1 : std::atoi(text), 0, kMaxDevices);
  const std::size_t memory = bytesFromEnvironment("NVIDIA_VIRTUAL_SIMULATED_MEMORY", kDefaultMemory);
  std::vector<std::unique_ptr<Device>> all;
  std::vector<std::string> uuids;
  for (int i = 0; i < count; ++i) {
    all.push_back(std::make_unique<Device>(i, memory));
    uuids.push_back(all.back()->uuidText());
  }
  auto list = std::make_unique<std::vector<std::unique_ptr<Device>>>();
  for (const int index : visibleIndices(std::getenv("CUDA_VISIBLE_DEVICES"), uuids)) {
    if (hasFailed(index)) continue;
    all[index]->ordinal = static_cast<CUdevice>(list->size());
    list->push_back(std::move(all[index]));
  }
  deviceList() = std::move(list);
  for (const auto& device : devices()) {
    device->primary = makePrimaryContext(*device);
    device->defaultPool = makePool(*device);
  }
}

const std::vector<std::unique_ptr<Device>>& devices() { return *deviceList(); }

Device* findDevice(CUdevice ordinal) {
  const auto& list = devices();
  return ordinal >= 0 && ordinal < static_cast<CUdevice>(list.size()) ? list[ordinal].get() : nullptr;
}

namespace {

/// Runs body(Device&) on the device that `ordinal` names.
template <class Body>
CUresult onDevice(CUdevice ordinal, Body&& body) {
  return inDriver([&]() -> CUresult {
    Device* device = findDevice(ordinal);
    return device == nullptr ? CUDA_ERROR_INVALID_DEVICE : body(*device);
  });
}

/// Copies a text into a caller's array of `length`, cut to fit and always terminated.
void copyText(char* destination, int length, std::string_view text) {
  const std::size_t count = std::min<std::size_t>(text.size(), length - 1);
  std::memcpy(destination, text.data(), count);
  destination[count] = 0;
}

}  // namespace
}  // namespace simulator

using namespace simulator;

DRIVER_CALL cuDeviceGetCount(int* count) {
  return inDriver([&]() -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(devices().size());
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGet(CUdevice* device, int ordinal) {
  return inDriver([&]() -> CUresult {
    if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (findDevice(ordinal) == nullptr) return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetName(char* name, int len, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (name == nullptr || len < 1) return CUDA_ERROR_INVALID_VALUE;
    copyText(name, len, kDeviceName);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetUuid(CUuuid* uuid, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = device.uuid;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) { return cuDeviceGetUuid(uuid, dev); }

DRIVER_CALL cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = device.totalBytes;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return deviceAttribute(device, static_cast<int>(attrib), *pi) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

DRIVER_CALL cuDeviceComputeCapability(int* major, int* minor, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *major = kComputeCapability / 10;
    *minor = kComputeCapability % 10;
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return onDevice(dev, [&](Device& device) -> CUresult {
    const std::string text = device.pciBusId();
    if (pciBusId == nullptr || len <= static_cast<int>(text.size())) return CUDA_ERROR_INVALID_VALUE;
    copyText(pciBusId, len, text);
    return CUDA_SUCCESS;
  });
}

DRIVER_CALL cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return inDriver([&]() -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::string asked = lower(pciBusId);
    for (const auto& device : devices()) {
      const std::string full = lower(device->pciBusId());
      if (asked != full && asked != full.substr(5) && asked != full.substr(0, 10)) continue;
      *dev = device->ordinal;
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

DRIVER_CALL cuDeviceGetExecAffinitySupport(int* pi, CUexecAffinityType, CUdevice dev) {
  return onDevice(dev, [&](Device&) -> CUresult {
    if (pi == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;  // partitions of multiprocessors exist only under MPS
    return CUDA_SUCCESS;
  });
}
