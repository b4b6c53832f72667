// What a program's image is: PTX text, a fat binary, the wrapper around one, or machine code; and the PTX that a device of this compute
// capability would choose from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_abi.h"

namespace simulator {

/// The texts of an image: one, or one for each object file of a program that was linked from relocatable device code.
/// CUDA_ERROR_NO_BINARY_FOR_GPU when nothing in it fits, CUDA_ERROR_INVALID_IMAGE when it is none of the known forms or damaged.
CUresult readImage(const void* image, std::vector<std::string>& texts, std::string& sentence);

}  // namespace simulator
