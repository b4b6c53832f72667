// The beginning of a PTX text.
#pragma once

#include <string>

#include "cuda_abi.h"

namespace simulator {

/// Whether the text begins with a directive, after comments.
bool looksLikePtx(const char* text);

/// The highest PTX version that a driver compiles: 84 for 12040 (CUDA 12.4).
unsigned newestPtx(int driverVersion);

/// CUDA_ERROR_UNSUPPORTED_PTX_VERSION and a reason, if the text has a version that is newer than
/// the driver.
CUresult checkPtxVersion(const std::string& text, std::string& sentence);

}  // namespace simulator
