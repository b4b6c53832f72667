// Sentences about errors. They go to the file that CUDA_LOG_FILE names (stdout and stderr are
// allowed), and to the buffer and the callbacks of the cuLogs functions, as with NVIDIA's driver.
#pragma once

#include <string_view>

namespace interposer {

/// printf-style; one line.
void log(const char* format, ...) __attribute__((format(printf, 1, 2)));
/// Messages about wrong arguments, in the words of NVIDIA's driver.
void logOf(const char* call, const char* sentence);
/// A message of the worker or of its driver. The driver's have a time and a source already.
void logFromDriver(std::string_view message);

}  // namespace interposer
