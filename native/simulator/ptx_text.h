// The beginning of a PTX text.
#pragma once

#include <cstdint>
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

/// CUDA_ERROR_NO_BINARY_FOR_GPU and a reason, if the text's `.target` is not for the GPU.
CUresult checkPtxTarget(const std::string& text, std::string& sentence);

/// Whether PTX for `arch` (80 for 8.0) runs on the GPU. Architecture-specific text runs only on its
/// architecture, family-specific text only within its family, and other text also on later ones.
bool runsPtx(std::uint32_t arch, bool archSpecific, bool familySpecific);

}  // namespace simulator
