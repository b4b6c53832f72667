#include "native/simulator/device.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "native/simulator/attributes.h"
#include "native/simulator/machine.h"
#include "native/simulator/shared_state.h"

namespace simulator {
namespace {

Devices& deviceList() {
  static auto& list = *new Devices;
  return list;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// The index of the device that an entry of CUDA_VISIBLE_DEVICES names; -1 if none. A UUID may be
/// shortened while it is unique.
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
  if (entry.empty() || entry.size() > 4 ||
      !std::all_of(entry.begin(), entry.end(), [](unsigned char c) { return std::isdigit(c); }))
    return -1;
  const int index = std::atoi(std::string(entry).c_str());
  return index < static_cast<int>(uuids.size()) ? index : -1;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// NVIDIA's driver starts, and takes and returns memory, by ioctl. A worker counts these calls.
void callKernel() { ioctl(-1, 0); }

}  // namespace

Device::Device(int index_, std::size_t memory, SharedState* shared)
    : index(index_), described(index_), totalBytes(memory), uuid(uuidOf(index_)), shared_(shared) {
  callKernel();
}

std::size_t Device::contextBytes() const {
  const std::size_t bytes = contextMemory().value_or(shared_ != nullptr ? 0 : kContextBytes);
  return std::min(bytes, totalBytes / 16);
}

std::string Device::pciBusId() const {
  int bus = 0;
  deviceAttribute(described, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, bus);
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned>(bus) & 0xff);
  return text;
}

bool Device::charge(std::size_t bytes) {
  callKernel();
  if (shared_ != nullptr) return shared_->charge(index, bytes, totalBytes);
  std::size_t used = used_.load();
  do {
    if (bytes > totalBytes - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

void Device::release(std::size_t bytes) {
  callKernel();
  if (shared_ != nullptr) return shared_->release(index, bytes);
  used_.fetch_sub(bytes);
}

std::size_t Device::usedBytes() const {
  return shared_ != nullptr ? shared_->used(index) : used_.load();
}

void Device::addContext(int change) {
  if (shared_ != nullptr) shared_->addContext(index, change);
}

void Device::vacate() {
  if (shared_ != nullptr) vacated_ = shared_->takeAway(index);
}

bool Device::occupy(int newIndex) {
  if (shared_ != nullptr && !shared_->giveBack(newIndex, vacated_, totalBytes)) return false;
  index = newIndex;
  uuid = uuidOf(newIndex);
  return true;
}

Device::Busy::Busy(Device& device) : device_(device) {
  if (device.shared_ != nullptr) device.shared_->beginKernel(device.index);
}

Device::Busy::~Busy() {
  if (device_.shared_ != nullptr) device_.shared_->endKernel(device_.index);
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
    if (index < 0) break;  // entries after an invalid one are ignored
    if (std::find(chosen.begin(), chosen.end(), index) != chosen.end()) return {};
    chosen.push_back(index);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return chosen;
}

const Devices& devices() { return deviceList(); }

void setDevices(Devices devices) { deviceList() = std::move(devices); }

Device* findDevice(CUdevice ordinal) {
  const auto& list = devices();
  return ordinal >= 0 && ordinal < static_cast<CUdevice>(list.size()) ? list[ordinal].get()
                                                                      : nullptr;
}

Device* findDeviceByPciBusId(std::string_view busId) {
  const std::string wanted = lower(busId);
  for (const auto& device : devices()) {
    const std::string full = lower(device->pciBusId());
    if (wanted == full || wanted == full.substr(5) || wanted == full.substr(0, 10))
      return device.get();
  }
  return nullptr;
}

}  // namespace simulator
