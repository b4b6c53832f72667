#include <charconv>

#include "interposer/entry/driver_version.h"

namespace interposer {

namespace {

constexpr std::string_view kLine = "\nsystem nvmlSystemGetCudaDriverVersion_v2 0 ";
constexpr int kBytes = 4;

}  // namespace

/// The line has the status 0 and the bytes of an int, the lowest first.
std::optional<int> versionInPage(std::string_view page) {
  const std::size_t at = page.find(kLine);
  if (at == std::string_view::npos) return {};
  const std::string_view digits = page.substr(at + kLine.size(), 2 * kBytes);
  int version = 0;
  for (int i = 0; i < kBytes; ++i) {
    const char* first = digits.data() + 2 * i;
    unsigned byte = 0;
    if (digits.size() < 2 * kBytes || std::from_chars(first, first + 2, byte, 16).ptr != first + 2)
      return {};
    version |= static_cast<int>(byte << (8 * i));
  }
  if (version <= 0) return {};
  return version;
}

}  // namespace interposer
