#include "native/simulator/machine.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string_view>

namespace simulator {
namespace {

constexpr unsigned kComputeCapability = 90;
constexpr std::size_t kDefaultMemory = std::size_t{8} << 30;

/// Empty if the variable is not set.
std::string_view textOf(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? text : "";
}

/// Parses "8589934592", "512MiB" or "8GiB". Empty if the text is invalid.
std::optional<std::size_t> parseSize(std::string_view text) {
  unsigned long long number = 0;
  const auto [unit, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view suffix(unit, text.data() + text.size() - unit);
  const int shift = suffix == "KiB"   ? 10
                    : suffix == "MiB" ? 20
                    : suffix == "GiB" ? 30
                    : suffix == "TiB" ? 40
                                      : 0;
  if ((shift == 0 && !suffix.empty()) || number > (~0ull >> 16 >> shift)) return std::nullopt;
  return static_cast<std::size_t>(number) << shift;
}

}  // namespace

int deviceCount() {
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATED_GPUS");
  return std::clamp(text == nullptr || *text == 0 ? 1 : std::atoi(text), 0, kMaxDevices);
}

std::size_t deviceMemory(int index) {
  std::string_view sizes = textOf("NVIDIA_VIRTUAL_SIMULATED_MEMORY");
  for (int before = 0; before < index; ++before) {
    const std::size_t comma = sizes.find(',');
    if (comma == std::string_view::npos) break;
    sizes.remove_prefix(comma + 1);
  }
  const std::size_t bytes = parseSize(sizes.substr(0, sizes.find(','))).value_or(0);
  return bytes == 0 ? kDefaultMemory : bytes;
}

std::optional<std::size_t> contextMemory() {
  return parseSize(textOf("NVIDIA_VIRTUAL_SIMULATED_CONTEXT"));
}

int driverVersionFromEnvironment() {
  const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATED_DRIVER_VERSION");
  int major = 0, minor = 0;
  return text != nullptr && std::sscanf(text, "%2d.%1d", &major, &minor) == 2
             ? major * 1000 + minor * 10
             : kNewestApi;
}

unsigned computeCapability() {
  static const unsigned reported = [] {
    const char* text = std::getenv("NVIDIA_VIRTUAL_SIMULATED_COMPUTE_CAPABILITY");
    unsigned major = 0, minor = 0;
    int read = 0;
    const bool whole = text != nullptr &&
                       std::sscanf(text, "%2u.%1u%n", &major, &minor, &read) == 2 &&
                       text[read] == 0;
    return whole && major > 0 ? major * 10 + minor : kComputeCapability;
  }();
  return reported;
}

bool hasFailed(int index) {
  const char* path = std::getenv("NVIDIA_VIRTUAL_SIMULATED_FAILURES");
  std::ifstream file(path != nullptr ? path : "");
  for (int failed = 0; file >> failed;) {
    if (failed == index) return true;
  }
  return false;
}

/// The first bytes are a readable name, the last byte is the index.
CUuuid uuidOf(int index) {
  static constexpr unsigned char kStem[16] = {0x73, 0x69, 0x6d, 0x75, 0x6c, 0x61, 0x40, 0x64,
                                              0xa9, 0x70, 0x75, 0,    0,    0,    0,    0};
  CUuuid uuid;
  std::memcpy(uuid.bytes, kStem, sizeof kStem);
  uuid.bytes[15] = static_cast<char>(index);
  return uuid;
}

std::string uuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += hex;
  }
  return text;
}

}  // namespace simulator
