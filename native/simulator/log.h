// Logs the message of an error, for callbacks of cuLogsRegisterCallback and the file of
// CUDA_LOG_FILE.
#pragma once

#include <string>

namespace simulator {

void logError(const std::string& sentence);

}  // namespace simulator
