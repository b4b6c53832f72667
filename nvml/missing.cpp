// Functions that answer the same to everybody. Their parameters are not declared: the caller passes
// them in registers, and nobody reads them.
#include "nvml/library.h"

using namespace nvml;

namespace {

Return refuse(Return status) {
  const Return initialized = Library::instance().initialized();
  return initialized == kSuccess ? status : initialized;
}

}  // namespace

#define NO_PERMISSION(call) \
  NVML_EXPORT Return call() { return refuse(kNoPermission); }
#define NOT_SUPPORTED(call) \
  NVML_EXPORT Return call() { return refuse(kNotSupported); }
#include "nvml/missing.def"
