// Reads a program's image: PTX text, a fat binary, its wrapper, or machine code. Selects the PTX
// for a device of this compute capability.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda_abi.h"

namespace simulator {

/// Reads the texts of an image: one, or one per object file of relocatable device code. Returns
/// CUDA_ERROR_NO_BINARY_FOR_GPU if none fits, CUDA_ERROR_UNSUPPORTED_PTX_VERSION if a text is newer
/// than the driver, and CUDA_ERROR_INVALID_IMAGE if the format is unknown or damaged. `sentence`:
/// the reason.
CUresult readImage(const void* image, std::vector<std::string>& texts, std::string& sentence);

/// Reads the texts of an input of the linker: of PTX, or of all fat binaries that the input is or
/// holds.
CUresult readLinkInput(CUjitInputType type, std::span<const std::byte> data,
                       std::vector<std::string>& texts, std::string& sentence);

}  // namespace simulator
