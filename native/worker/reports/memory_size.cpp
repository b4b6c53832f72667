#include "native/worker/reports/memory_size.h"

#include <cstdio>
#include <iterator>

namespace worker {

std::string formatMemorySize(std::uint64_t bytes) {
  if (bytes == 1) return "1 byte";
  constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto size = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; size >= 1024 && unit + 1 < std::size(kUnits); ++unit) size /= 1024;
  char text[32];
  int length = std::snprintf(text, sizeof text, "%.1f", size);
  if (text[length - 1] == '0') length -= 2;
  return std::string(text, length) + ' ' + kUnits[unit];
}

}  // namespace worker
