// Sentences about errors. CUDA_LOG_FILE names stdout, stderr or a file, as with NVIDIA's driver.
#pragma once

namespace interposer {

/// printf-style; one line. Does nothing unless CUDA_LOG_FILE is set.
void log(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace interposer
