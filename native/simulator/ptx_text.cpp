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

bool runsPtx(std::uint32_t arch, bool archSpecific, bool familySpecific) {
  const unsigned gpu = computeCapability();
  if (archSpecific) return arch == gpu;
  return arch <= gpu && (!familySpecific || arch / 10 == gpu / 10);
}

CUresult checkPtxTarget(const std::string& text, std::string& sentence) {
  const std::size_t target = text.find("\n.target");
  unsigned arch = 0;
  char suffix = 0;
  if (target == std::string::npos ||
      std::sscanf(text.c_str() + target, "\n.target sm_%3u%c", &arch, &suffix) < 1 ||
      runsPtx(arch, suffix == 'a', suffix == 'f'))
    return CUDA_SUCCESS;
  const unsigned gpu = computeCapability();
  sentence = "The PTX is for compute capability " + dotted(arch / 10, arch % 10) +
             (suffix == 'a' || suffix == 'f' ? std::string(1, suffix) : "") + ", and the GPU has " +
             dotted(gpu / 10, gpu % 10) + ". Compile it for that or an earlier one.";
  return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

}  // namespace simulator
