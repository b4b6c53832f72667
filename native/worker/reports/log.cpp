#include "native/worker/reports/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace worker {

void log(const char* format, ...) {
  static std::atomic<std::uint64_t> lines = 0;
  const std::uint64_t before = lines.fetch_add(1, std::memory_order_relaxed);
  if (before > kMostLines) return;
  if (before == kMostLines)
    format = "more lines of this session are not logged: its program caused too many";
  char line[2048];
  std::va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  const auto bytes = std::min<std::size_t>(length, sizeof line - 2);
  line[bytes] = '\n';
  [[maybe_unused]] const auto written = write(STDERR_FILENO, line, bytes + 1);
}

}  // namespace worker
