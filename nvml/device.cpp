// Devices: handles, identity, memory and utilisation.
#include <strings.h>

#include <algorithm>
#include <cstring>

#include "nvml/library.h"

using namespace nvml;

namespace {

/// The handle of the first GPU that matches.
template <class Matches>
Return find(Device* device, Matches&& matches) {
  return onPage([&](const Page& page) {
    if (device == nullptr) return kInvalidArgument;
    const auto found = std::ranges::find_if(page.gpus, matches);
    if (found == page.gpus.end()) return kNotFound;
    *device = Library::instance().handleOf(static_cast<std::size_t>(found - page.gpus.begin()));
    return kSuccess;
  });
}

/// Text of a member that may lack its terminating zero.
template <std::size_t Bytes>
std::string_view boundedText(const char (&text)[Bytes]) {
  return {text, strnlen(text, Bytes)};
}

bool isSame(std::string_view one, std::string_view other) {
  return one.size() == other.size() && strncasecmp(one.data(), other.data(), one.size()) == 0;
}

Return findUuid(std::string_view uuid, Device* device) {
  return find(device, [&](const Gpu& gpu) { return isSame(gpu.uuid, uuid); });
}

/// 0000:00:06.0 and 00000000:00:06.0 name the same device.
std::string_view withoutDomainZeros(std::string_view bus) {
  const std::size_t colon = bus.find(':');
  while (colon != bus.npos && bus.size() > 1 && bus.front() == '0' && bus[1] != ':')
    bus.remove_prefix(1);
  return bus;
}

bool isSameBus(std::string_view one, std::string_view other) {
  return isSame(withoutDomainZeros(one), withoutDomainZeros(other));
}

constexpr const char* kPciInfo = "nvmlDeviceGetPciInfo_v3";

Return pciInfoOf(const Gpu& gpu, const std::string& name, PciInfo& info) {
  return writeAnswer(gpu.answers, name, {{&info, sizeof info}});
}

/// Before version 3, the struct ended with four reserved words where busId is now.
/// @param name the answer with the present struct
Return legacyPciInfo(Device device, const std::string& name, PciInfo* out) {
  constexpr std::size_t kBytes = offsetof(PciInfo, busId);
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    PciInfo info{};
    if (out == nullptr) return kInvalidArgument;
    const Return status = pciInfoOf(gpu, name, info);
    if (status == kSuccess) std::memcpy(static_cast<void*>(out), &info, kBytes);
    return status;
  });
}

}  // namespace

NVML_EXPORT Return nvmlDeviceGetCount_v2(unsigned* count) {
  return onPage([&](const Page& page) -> Return {
    if (count == nullptr) return kInvalidArgument;
    *count = static_cast<unsigned>(page.gpus.size());
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

NVML_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return onPage([&](const Page& page) {
    if (device == nullptr || index >= page.gpus.size()) return kInvalidArgument;
    *device = Library::instance().handleOf(index);
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  return uuid == nullptr ? kInvalidArgument : findUuid(uuid, device);
}

NVML_EXPORT Return nvmlDeviceGetHandleByUUIDV(const UuidV1* uuid, Device* device) {
  if (const Return version = checkVersion(uuid); version != kSuccess) return version;
  if (uuid->type == 1) return findUuid(boundedText(uuid->text), device);
  if (uuid->type != 2) return kInvalidArgument;
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += {kDigits[uuid->bytes[i] >> 4], kDigits[uuid->bytes[i] & 15]};
  }
  return findUuid(text, device);
}

NVML_EXPORT Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus, Device* device) {
  if (bus == nullptr) return kInvalidArgument;
  return find(device, [&](const Gpu& gpu) {
    PciInfo info{};
    return pciInfoOf(gpu, kPciInfo, info) == kSuccess && isSameBus(boundedText(info.busId), bus);
  });
}

NVML_EXPORT Return nvmlDeviceGetHandleByPciBusId(const char* bus, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(bus, device);
}

NVML_EXPORT Return nvmlDeviceGetHandleBySerial(const char* serial, Device* device) {
  if (serial == nullptr) return kInvalidArgument;
  return find(device, [&](const Gpu& gpu) {
    const auto found = gpu.answers.find("nvmlDeviceGetSerial");
    return found != gpu.answers.end() && found->second.bytes == serial;
  });
}

NVML_EXPORT Return nvmlDeviceGetIndex(Device device, unsigned* index) {
  return onDevice(device, [&](const Gpu&, unsigned found) {
    if (index == nullptr) return kInvalidArgument;
    *index = found;
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetPciInfo(Device device, PciInfo* info) {
  return legacyPciInfo(device, kPciInfo, info);
}

NVML_EXPORT Return nvmlDeviceGetPciInfo_v2(Device device, PciInfo* info) {
  return legacyPciInfo(device, kPciInfo, info);
}

/// NCCL asks this one.
NVML_EXPORT Return nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned link, PciInfo* info) {
  return legacyPciInfo(device, "nvmlDeviceGetNvLinkRemotePciInfo_v2/" + std::to_string(link), info);
}

NVML_EXPORT Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (memory == nullptr) return kInvalidArgument;
    const Wide used = std::min(gpu.used, gpu.total);
    *memory = {gpu.total, gpu.total - used, used};
    return kSuccess;
  });
}

NVML_EXPORT Return nvmlDeviceGetMemoryInfo_v2(Device device, MemoryV2* memory) {
  if (const Return version = checkVersion(memory); version != kSuccess) return version;
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    const Wide used = std::min(gpu.used, gpu.total);
    *memory = {versionOf<MemoryV2>(), gpu.total, 0, gpu.total - used, used};
    return kSuccess;
  });
}

/// Nothing measures the memory controller by tenant.
NVML_EXPORT Return nvmlDeviceGetUtilizationRates(Device device, Utilization* rates) {
  return onDevice(device, [&](const Gpu& gpu, unsigned) {
    if (rates == nullptr) return kInvalidArgument;
    *rates = {gpu.busy, 0};
    return kSuccess;
  });
}
