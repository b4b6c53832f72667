// The sentence behind an error: for callbacks that cuLogsRegisterCallback registered, and for the file that CUDA_LOG_FILE names.
#pragma once

#include <string>

namespace simulator {

void logError(const std::string& sentence);

}  // namespace simulator
