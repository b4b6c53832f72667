#include "interposer/session/log.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "interposer/session/log_buffer.h"

namespace interposer {

namespace {

int openLog() {
  const char* path = secure_getenv("CUDA_LOG_FILE");
  if (path == nullptr || *path == '\0') return -1;
  if (std::strcmp(path, "stdout") == 0) return STDOUT_FILENO;
  if (std::strcmp(path, "stderr") == 0) return STDERR_FILENO;
  return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

/// Time, thread, source and severity, as the driver writes them.
std::string stamp(const char* source) {
  timeval now{};
  gettimeofday(&now, nullptr);
  tm local{};
  localtime_r(&now.tv_sec, &local);
  char text[96];
  std::snprintf(text, sizeof text, "[%02d:%02d:%02d.%03d][%ld][%s][E]", local.tm_hour, local.tm_min,
                local.tm_sec, static_cast<int>(now.tv_usec / 1000), syscall(SYS_gettid), source);
  return text;
}

void write(const std::string& message) {
  static const int file = openLog();
  LogBuffer::instance().add(message, CU_LOG_LEVEL_ERROR);
  if (file < 0) return;
  const std::string line = message + '\n';
  [[maybe_unused]] const auto written = ::write(file, line.data(), line.size());
}

}  // namespace

void log(const char* format, ...) {
  char sentence[1024];
  std::va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(sentence, sizeof sentence, format, arguments);
  va_end(arguments);
  write(stamp("nvidia-virtual") + ' ' + sentence);
}

void logOf(const char* call, const char* sentence) {
  write(stamp("CUDA") + '[' + call + "] " + sentence);
}

void logFromDriver(std::string_view message) {
  const bool stamped = message.starts_with('[');
  write(stamped ? std::string(message) : stamp("nvidia-virtual") + ' ' + std::string(message));
}

}  // namespace interposer
