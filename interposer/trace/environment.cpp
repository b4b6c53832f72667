#include "interposer/trace/environment.h"

#include <cstdlib>
#include <cstring>

namespace interposer::trace {

const char* filePath() {
  const char* path = std::getenv("NVIDIA_VIRTUAL_TRACE");
  return path != nullptr ? path : "";
}

bool isSummaryWanted() {
  const char* wanted = std::getenv("NVIDIA_VIRTUAL_SUMMARY");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

}  // namespace interposer::trace
