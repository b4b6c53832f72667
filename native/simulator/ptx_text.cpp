#include "native/simulator/ptx_text.h"

#include <cctype>
#include <cstdio>
#include <cstring>

#include "native/simulator/machine.h"

namespace simulator {
namespace {

/// The text behind white space and comments; null if a comment does not end.
const char* firstDirective(const char* text) {
  for (;;) {
    while (std::isspace(static_cast<unsigned char>(*text))) ++text;
    if (std::strncmp(text, "//", 2) == 0) {
      text += std::strcspn(text, "\n");
    } else if (std::strncmp(text, "/*", 2) == 0) {
      const char* end = std::strstr(text + 2, "*/");
      if (end == nullptr) return nullptr;
      text = end + 2;
    } else {
      return text;
    }
  }
}

std::string dotted(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

}  // namespace

bool looksLikePtx(const char* text) {
  const char* first = firstDirective(text);
  return first != nullptr && *first == '.';
}

/// Each release of CUDA since 11.0 has the next version of PTX, except 12.6.
unsigned newestPtx(int driverVersion) {
  const int major = driverVersion / 1000, minor = driverVersion % 1000 / 10;
  const bool behind = major == 12 && minor >= 6;
  return static_cast<unsigned>((major - 4) * 10 + minor - (behind ? 1 : 0));
}

CUresult checkPtxVersion(const std::string& text, std::string& sentence) {
  const char* first = firstDirective(text.c_str());
  unsigned major = 0, minor = 0;
  const int driver = driverVersionFromEnvironment();
  const unsigned newest = newestPtx(driver);
  if (first == nullptr || std::sscanf(first, ".version %2u.%1u", &major, &minor) != 2 ||
      major * 10 + minor <= newest)
    return CUDA_SUCCESS;
  sentence =
      "The PTX has version " + dotted(major, minor) + ", and a driver of CUDA " +
      dotted(static_cast<unsigned>(driver) / 1000, static_cast<unsigned>(driver) % 1000 / 10) +
      " compiles up to " + dotted(newest / 10, newest % 10) +
      ". Compile it with a CUDA toolkit that is not newer than the driver.";
  return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

}  // namespace simulator
