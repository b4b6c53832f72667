#include "interposer/trace/environment.h"

#include <cstdlib>
#include <cstring>

namespace interposer::trace {

/// Not for set-user-ID programs, which this library is loaded into as well.
const char* filePath() {
  const char* path = secure_getenv("NVIDIA_VIRTUAL_TRACE");
  return path != nullptr ? path : "";
}

bool isSummaryWanted() {
  const char* wanted = secure_getenv("NVIDIA_VIRTUAL_SUMMARY");
  return wanted != nullptr && std::strcmp(wanted, "1") == 0;
}

}  // namespace interposer::trace
