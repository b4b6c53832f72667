#include "interposer/session/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace interposer {

namespace {

int openLog() {
  const char* path = std::getenv("CUDA_LOG_FILE");
  if (path == nullptr || *path == '\0') return -1;
  if (std::strcmp(path, "stdout") == 0) return STDOUT_FILENO;
  if (std::strcmp(path, "stderr") == 0) return STDERR_FILENO;
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

}  // namespace

void log(const char* format, ...) {
  static const int file = openLog();
  if (file < 0) return;
  char line[1024];
  std::va_list arguments;
  va_start(arguments, format);
  const int prefix = std::snprintf(line, sizeof line, "nvidia-virtual: ");
  const int length =
      prefix + std::vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
  va_end(arguments);
  const std::size_t bytes = length < static_cast<int>(sizeof line) - 1 ? length : sizeof line - 2;
  line[bytes] = '\n';
  [[maybe_unused]] const auto written = write(file, line, bytes + 1);
}

}  // namespace interposer
